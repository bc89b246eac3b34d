// Batched copies: a function of the driver since CUDA 12.8, whichever toolkit this is built with.
#include <array>
#include <cstdint>

#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::raw;
using cuda::use;

namespace {

constexpr int kSince = 12080;

// As cuda.h declares it since 12.8. It is declared here so that older toolkits can build this.
struct Location {
    std::int32_t type = 0;
    std::int32_t id = 0;
};
struct Attributes {
    std::int32_t source_order = 0;
    Location source_hint;
    Location destination_hint;
    std::uint32_t flags = 0;
};
static_assert(sizeof(Attributes) == 24);
constexpr std::int32_t kOrderStream = 1;
constexpr std::int32_t kOrderAny = 3;
#if CUDA_VERSION >= 12080
static_assert(sizeof(Attributes) == sizeof(CUmemcpyAttributes));
static_assert(kOrderStream == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
static_assert(kOrderAny == CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
#endif

// Version 13.0 of the function has no index of the copy that failed; this is that of 12.8.
using BatchCopy = CUresult (*)(CUdeviceptr* destinations, CUdeviceptr* sources, std::size_t* sizes,
                               std::size_t count, Attributes* attributes, std::size_t* from_first,
                               std::size_t number_of_attributes, std::size_t* failed, CUstream);

BatchCopy batch_copy() {
    static const auto function = cuda::driver_function<BatchCopy>("cuMemcpyBatchAsync", kSince);
    return function;
}

// The driver takes addresses as numbers of the same size, and only reads them.
template <class Pointer>
CUdeviceptr* addresses(const std::vector<Pointer>& pointers) {
    static_assert(sizeof(Pointer) == sizeof(CUdeviceptr));
    return reinterpret_cast<CUdeviceptr*>(const_cast<Pointer*>(pointers.data()));
}

}  // namespace

bool has_batch() { return batch_copy() != nullptr; }

void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources,
                      const std::vector<std::size_t>& sizes, bool stream_order,
                      const Stream& stream) {
    if (!has_batch()) {
        throw Error(Failure::other, "cuMemcpyBatchAsync", cudaErrorCallRequiresNewerDriver,
                    "the driver supports CUDA " + driver_version() + ", the call needs 12.8");
    }
    use(stream.device());
    Attributes attributes{.source_order = stream_order ? kOrderStream : kOrderAny};
    std::size_t from_first = 0;
    std::size_t failed = 0;
    cuda::check(batch_copy()(addresses(destinations), addresses(sources),
                             const_cast<std::size_t*>(sizes.data()), sizes.size(), &attributes,
                             &from_first, 1, &failed, raw(stream)),
                "cuMemcpyBatchAsync");
}

void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources, std::size_t bytes, bool stream_order,
                      const Stream& stream) {
    // Reused, so that a call costs no more than the driver's.
    static thread_local std::vector<std::size_t> sizes;
    sizes.assign(destinations.size(), bytes);
    copy_batch_async(destinations, sources, sizes, stream_order, stream);
}

}  // namespace waywiser::gpu
