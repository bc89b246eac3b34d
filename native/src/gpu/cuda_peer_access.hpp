// Peer access to memory that cudaDeviceEnablePeerAccess does not cover: pools and mapped memory
// name their peers one by one. They get the peers of all calls of enable_peer_access(), earlier or
// later, so that peer access is one property of the process for every kind of memory.
#pragma once

#include <cstddef>

#include "cuda_call.hpp"

namespace waywiser::gpu::cuda {

// The device's default pool, prepared for this process: it keeps freed memory for the next
// allocation, and enabled peers can access it.
cudaMemPool_t default_pool(int device);

// From now on, until forgotten, its own device and enabled peers can access the mapped range.
void grant_mapped(int device, std::byte* data, std::size_t bytes);
void forget_mapped(std::byte* data) noexcept;

}  // namespace waywiser::gpu::cuda
