// Pinned memory for programs: at a NUMA node, in huge pages, independent of any engine.
#pragma once

#include <cstddef>

namespace waywiser::transfer {

// Allocates pinned memory at the node (-1: the node of the calling thread), touched in parallel, in
// one registration; in several, with a warning on standard error, where the driver refuses one of
// this size. Without a usable GPU it is ordinary memory. Pinning needs a context of a GPU: one that
// the process uses already, else of the first GPU. Throws gpu::Error, std::bad_alloc.
void* pinned_allocate(std::size_t bytes, int numa);

// Waits for all GPUs that the process uses, and frees the memory. Does nothing with an address
// that pinned_allocate() did not return. In a forked child it does nothing.
void pinned_free(void* data) noexcept;

}  // namespace waywiser::transfer
