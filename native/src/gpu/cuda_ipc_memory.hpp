// Memory allocated by another process, which this library starts, since a process cannot open its
// own handle.
#pragma once

#include <cstddef>

namespace waywiser::gpu::cuda {

// On the current device, which must be this one.
std::byte* open_foreign(int device, std::size_t bytes);
void close_foreign(std::byte* data) noexcept;

}  // namespace waywiser::gpu::cuda
