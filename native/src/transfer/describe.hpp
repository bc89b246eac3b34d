// The kind and place of memory over a whole range.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/gpu.hpp"

namespace waywiser::transfer {

// A contiguous part of a range that is in one allocation or registration, or is pageable.
struct Segment {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    gpu::PointerInfo info;
};

// The segments of [data, data + bytes) in order. Finds where each registration starts and ends.
// Bytes after a registration count as pageable until the next known one, which is searched at page
// borders of the first `kPagesLookedAt` pages and then at growing distances: CPUs can copy both
// kinds, and a GPU only gets memory that is known to be registered.
std::vector<Segment> segments(const void* data, std::size_t bytes);

// A summary of the whole range: its kind, and whether one call can copy it with a GPU.
struct Range {
    gpu::PointerKind kind = gpu::PointerKind::pageable;  // at the start
    int device = -1;
    bool uniform = true;  // covered by one allocation or registration, or neither end is in one
    gpu::PointerInfo first;
};
// Queries only the start and the end.
Range range_of(const void* data, std::size_t bytes);

// The NUMA node of an address's page; -1 if unknown or not in memory yet.
int numa_of_page(const void* data);

}  // namespace waywiser::transfer
