// What and where memory is, over a whole range.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/gpu.hpp"

namespace waywiser::transfer {

// Neighbouring bytes that lie in one allocation or registration, or are pageable.
struct Segment {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    gpu::PointerInfo info;
};

// The segments of [data, data + bytes) in order. Looks up where each registration starts and ends.
// Behind a registration the bytes count as pageable until the next known one starts, which is
// looked for at page borders of the first `kPagesLookedAt` pages and then at growing distances:
// a copy by CPUs serves both kinds, a copy by a GPU gets only what is known to be registered.
std::vector<Segment> segments(const void* data, std::size_t bytes);

// The whole range in short: its kind, and whether a GPU can copy it by one call.
struct Range {
    gpu::PointerKind kind = gpu::PointerKind::pageable;  // of the start
    int device = -1;
    bool uniform = true;  // one allocation or registration covers it, or none touches either end
    gpu::PointerInfo first;
};
// Asks about the start and the end only.
Range range_of(const void* data, std::size_t bytes);

// The NUMA node of the page of an address; -1 if it is unknown or not in memory yet.
int numa_of_page(const void* data);

}  // namespace waywiser::transfer
