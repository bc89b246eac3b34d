// Managed memory: its pages move to whoever touches them, or where they are sent.
#include "cuda_call.hpp"

namespace waywiser::gpu {
namespace {

using cuda::raw;
using cuda::use;

cudaMemLocation place(Location location) {
    cudaMemLocation at{};
    if (location.device >= 0) {
        at.type = cudaMemLocationTypeDevice;
        at.id = location.device;
    } else if (location.node >= 0) {
        at.type = cudaMemLocationTypeHostNuma;
        at.id = location.node;
    } else {
        at.type = cudaMemLocationTypeHost;
    }
    return at;
}

cudaMemoryAdvise named(Advice advice) {
    switch (advice) {
        case Advice::read_mostly: return cudaMemAdviseSetReadMostly;
        case Advice::not_read_mostly: return cudaMemAdviseUnsetReadMostly;
        case Advice::preferred_location: return cudaMemAdviseSetPreferredLocation;
        case Advice::accessed_by: break;
    }
    return cudaMemAdviseSetAccessedBy;
}

}  // namespace

void detail::ManagedDeleter::operator()(std::byte* data) const noexcept {
    cuda::forget(cudaFree(data));
}

ManagedBuffer::ManagedBuffer(std::size_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    WAYWISER_CUDA(cudaMallocManaged(&data, bytes, cudaMemAttachGlobal));
    data_.reset(static_cast<std::byte*>(data));
}

void advise(std::byte* data, std::size_t bytes, Advice advice, Location location) {
    // Who accesses it from the host is any CPU: a node is refused there.
    if (advice == Advice::accessed_by) location.node = -1;
#if CUDART_VERSION >= 13000
    WAYWISER_CUDA(cudaMemAdvise(data, bytes, named(advice), place(location)));
#else
    WAYWISER_CUDA(cudaMemAdvise_v2(data, bytes, named(advice), place(location)));
#endif
}

void prefetch_async(std::byte* data, std::size_t bytes, Location to, const Stream& stream) {
    use(stream.device());
#if CUDART_VERSION >= 13000
    WAYWISER_CUDA(cudaMemPrefetchAsync(data, bytes, place(to), 0, raw(stream)));
#else
    WAYWISER_CUDA(cudaMemPrefetchAsync_v2(data, bytes, place(to), 0, raw(stream)));
#endif
}

}  // namespace waywiser::gpu
