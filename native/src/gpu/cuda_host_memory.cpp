// Page-locked host memory.
#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::forget;
using cuda::use;

void detail::HostDeleter::operator()(std::byte* data) const noexcept { forget(cudaFreeHost(data)); }
void detail::RegistrationDeleter::operator()(std::byte* data) const noexcept {
    forget(cudaHostUnregister(data));
}

HostBuffer::HostBuffer(std::size_t bytes, HostUse use_for, int device) : bytes_(bytes) {
    use(device);
    unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped;
    if (use_for == HostUse::write_combined) flags |= cudaHostAllocWriteCombined;
    void* data = nullptr;
    WAYWISER_CUDA(cudaHostAlloc(&data, bytes, flags));
    data_.reset(static_cast<std::byte*>(data));
}

Registration::Registration(std::byte* data, std::size_t bytes, int device) {
    use(device);
    WAYWISER_CUDA(cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
    data_.reset(data);
}

std::byte* device_address(std::byte* host, int device) {
    use(device);
    void* address = nullptr;
    WAYWISER_CUDA(cudaHostGetDevicePointer(&address, host, 0));
    return static_cast<std::byte*>(address);
}

}  // namespace waywiser::gpu
