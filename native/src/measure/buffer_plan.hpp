// Which buffers a workload takes, and how its transfers lie in them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "measure/buffers.hpp"
#include "waywiser/arrangement.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// One transfer in the buffers of its workload.
struct Lie {
    Arrangement source;
    Arrangement destination;
    std::size_t source_buffer = 0;  // among the wants; in place both are the same
    std::size_t destination_buffer = 0;
    bool in_place = false;
    std::size_t stride = 0;  // bytes from one slice of the buffers to the next
};

struct BufferPlan {
    std::vector<BufferPool::Want> wants;
    std::vector<Lie> transfers;
    // Pieces of every buffer that repetitions of a sample take in turn: more than one where an
    // execution on bytes that another one had would not be the same again, be it for the caches.
    std::size_t slices = 1;
    bool own_slices = false;  // no piece twice in a sample
};

BufferPlan plan_buffers(const Request& request, const Machine& machine);

// Why the transfers of a workload cannot share the buffers that they name: they lie in them in
// different ways, or their bytes change places.
std::optional<std::string> sharing_refusal(const Request& request, const Machine& machine);

}  // namespace waywiser::measure
