// Managed memory: its pages migrate on access or on request.
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

// Drivers of systems with one node may only support the host as a whole.
template <class Call>
cudaError_t at(Location location, const Call& call) {
    cudaError_t status = call(place(location));
    if (status == cudaErrorInvalidDevice && location.device < 0 && location.node >= 0) {
        cuda::forget(status);
        location.node = -1;
        status = call(place(location));
    }
    return status;
}

#if CUDART_VERSION < 13000
// Whether the driver has the calls that take a location, which are those of CUDA 12.2. The older
// ones take a device, and the host as a whole.
bool takes_location() {
    constexpr int kSince = 12020;
    static const bool takes = cuda::driver_entry("cuMemPrefetchAsync_v2", kSince) != nullptr &&
                              cuda::driver_entry("cuMemAdvise_v2", kSince) != nullptr;
    return takes;
}

int device_of(const cudaMemLocation& where) {
    return where.type == cudaMemLocationTypeDevice ? where.id : cudaCpuDeviceId;
}
#endif

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

ManagedBuffer::ManagedBuffer(std::size_t bytes, int device) : bytes_(bytes) {
    use(device);
    void* data = nullptr;
    WAYWISER_CUDA(cudaMallocManaged(&data, bytes, cudaMemAttachGlobal));
    data_.reset(static_cast<std::byte*>(data));
}

void advise(std::byte* data, std::size_t bytes, Advice advice, Location location) {
    // The driver does not accept a node here: any CPU of the host.
    if (advice == Advice::accessed_by) location.node = -1;
    const auto cuda_advise = [&](cudaMemLocation where) {
#if CUDART_VERSION >= 13000
        return cudaMemAdvise(data, bytes, named(advice), where);
#else
        if (!takes_location()) return cudaMemAdvise(data, bytes, named(advice), device_of(where));
        return cudaMemAdvise_v2(data, bytes, named(advice), where);
#endif
    };
    cuda::check(at(location, cuda_advise), "cudaMemAdvise");
}

void prefetch_async(std::byte* data, std::size_t bytes, Location to, const Stream& stream) {
    use(stream.device());
    const auto cuda_prefetch = [&](cudaMemLocation where) {
#if CUDART_VERSION >= 13000
        return cudaMemPrefetchAsync(data, bytes, where, 0, raw(stream));
#else
        if (!takes_location()) {
            return cudaMemPrefetchAsync(data, bytes, device_of(where), raw(stream));
        }
        return cudaMemPrefetchAsync_v2(data, bytes, where, 0, raw(stream));
#endif
    };
    cuda::check(at(to, cuda_prefetch), "cudaMemPrefetchAsync");
}

}  // namespace waywiser::gpu
