// Pinned memory for programs: at a NUMA node, in huge pages, independent of any engine.
#pragma once

#include <cstddef>

namespace waywiser::transfer {

// Allocates pinned memory at the node (-1: the node of the calling thread), touched in parallel, in
// one registration, or in several with a warning on standard error if the driver rejects one of
// this size. Without a usable GPU it is ordinary memory. Uses a GPU context that the process
// already has, else that of the first GPU. Throws gpu::Error, std::bad_alloc.
void* pinned_allocate(std::size_t bytes, int numa);

// Waits for all GPUs that the process uses, then frees the memory. Does nothing for an address that
// pinned_allocate() did not return, and in a forked child.
void pinned_free(void* data) noexcept;

}  // namespace waywiser::transfer
