// Which devices reach memory that cudaDeviceEnablePeerAccess says nothing about: memory pools and
// mapped memory name their peers one by one. They get those that enable_peer_access() was, or will
// be, called for, so that peer access is one property of the process for every kind of memory.
#pragma once

#include <cstddef>

#include "cuda_call.hpp"

namespace waywiser::gpu::cuda {

// The device's default pool, made ready for this process: freed memory stays in it for the next
// allocation, and enabled peers reach it.
cudaMemPool_t default_pool(int device);

// From now on, until forgotten, the mapped range is reached by its own device and enabled peers.
void grant_mapped(int device, std::byte* data, std::size_t bytes);
void forget_mapped(std::byte* data) noexcept;

}  // namespace waywiser::gpu::cuda
