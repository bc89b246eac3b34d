// Memory that another process allocated: a process of our own, since a handle of one's own memory
// cannot be opened.
#pragma once

#include <cstddef>

namespace waywiser::gpu::cuda {

// On the current device, which is this one.
std::byte* open_foreign(int device, std::size_t bytes);
void close_foreign(std::byte* data) noexcept;

}  // namespace waywiser::gpu::cuda
