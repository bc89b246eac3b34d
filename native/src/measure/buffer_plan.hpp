// The buffers of a workload, and the layout of its transfers in them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "measure/buffers.hpp"
#include "waywiser/arrangement.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// One transfer in the buffers of its workload.
struct PlannedTransfer {
    Arrangement source;
    Arrangement destination;
    std::size_t source_buffer = 0;  // index of the (first) buffer; if in place, both are the same
    std::size_t destination_buffer = 0;
    bool in_place = false;
    // Among several memories: what arrives where. The buffers are those of all of them, one after
    // another from the first.
    std::optional<Exchange> exchange;
    std::size_t stride = 0;  // bytes from one slice of the buffers to the next
};

struct BufferPlan {
    std::vector<BufferPool::Spec> specs;
    std::vector<PlannedTransfer> transfers;
    // Number of slices of every buffer that repetitions of a sample use in turn: more than one if
    // repeating an execution on the same bytes would not be the same (because of caches, say).
    std::size_t slices = 1;
    bool own_slices = false;  // each repetition of a sample has its own slice
};

BufferPlan plan_buffers(const Request& request, const Machine& machine);

// Returns why the transfers of a workload cannot share the buffers that they name, or nullopt:
// different layouts, or an in-place executor.
std::optional<std::string> sharing_unsupported_reason(const Request& request,
                                                      const Machine& machine);

}  // namespace waywiser::measure
