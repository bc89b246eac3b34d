// Batched copies: in the runtime since 12.8, with another signature since 13.0.
#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::raw;
using cuda::use;

#if CUDART_VERSION >= 12080

bool has_batch() {
    constexpr int kSince = 12080;
    static const bool has = [] {
        int driver = 0;
        const cudaError_t code = cudaDriverGetVersion(&driver);
        cuda::forget(code);
        return code == cudaSuccess && driver >= kSince;
    }();
    return has;
}

void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources,
                      const std::vector<std::size_t>& sizes, bool stream_order,
                      const Stream& stream) {
    use(stream.device());
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder =
        stream_order ? cudaMemcpySrcAccessOrderStream : cudaMemcpySrcAccessOrderAny;
    std::size_t from_first = 0;
#if CUDART_VERSION >= 13000
    WAYWISER_CUDA(cudaMemcpyBatchAsync(destinations.data(), sources.data(), sizes.data(),
                                       sizes.size(), &attributes, &from_first, 1, raw(stream)));
#else
    std::size_t failed = 0;
    WAYWISER_CUDA(cudaMemcpyBatchAsync(
        const_cast<void**>(destinations.data()), const_cast<void**>(sources.data()), sizes.data(),
        sizes.size(), &attributes, &from_first, 1, &failed, raw(stream)));
#endif
}

#else

bool has_batch() { return false; }

void copy_batch_async(const std::vector<void*>&, const std::vector<const void*>&,
                      const std::vector<std::size_t>&, bool, const Stream&) {
    throw Error(Failure::other, "cudaMemcpyBatchAsync", cudaErrorNotSupported,
                "cudaErrorNotSupported: this build's toolkit is older than 12.8");
}

#endif

void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources, std::size_t bytes, bool stream_order,
                      const Stream& stream) {
    // Reused, so that a call costs no more than the runtime's.
    static thread_local std::vector<std::size_t> sizes;
    sizes.assign(destinations.size(), bytes);
    copy_batch_async(destinations, sources, sizes, stream_order, stream);
}

}  // namespace waywiser::gpu
