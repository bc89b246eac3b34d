// Page-locks host memory for all GPUs, and waits for those that may use such memory.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/gpu.hpp"

namespace waywiser::transfer {

// Page-locks the memory in one registration, or in several with a warning on standard error if the
// driver rejects one of this size. Uses a GPU context that the process already has, else that of
// the first GPU. Throws gpu::Error.
std::vector<gpu::Registration> lock_pages(std::byte* data, std::size_t bytes);

// Waits until no GPU uses memory that was page-locked. Throws gpu::Error if that cannot be
// determined now, because a stream is captured, say. A lost context uses nothing any more.
void wait_for_gpus();

}  // namespace waywiser::transfer
