// Device memory from the four allocators.

#include "cuda_call.hpp"
#include "cuda_ipc_memory.hpp"
#include "cuda_peer_access.hpp"

namespace waywiser::gpu {
namespace {

using cuda::check;
using cuda::forget;
using cuda::raw;
using cuda::use;

std::byte* allocate_plain(std::size_t bytes) {
    void* data = nullptr;
    WAYWISER_CUDA(cudaMalloc(&data, bytes));
    return static_cast<std::byte*>(data);
}

std::byte* allocate_pool(int device, std::size_t bytes) {
    const Stream stream(device);
    std::byte* const data = allocate_async(bytes, stream);
    stream.synchronize();
    return data;
}

// Freed in stream order, as it was allocated: tools that watch the runtime report a leak if
// cudaFree frees it. Afterwards the pool is trimmed, since memory that it keeps is not available to
// others.
void free_pool(int device, std::byte* data) {
    forget(cudaFreeAsync(data, nullptr));
    forget(cudaStreamSynchronize(nullptr));
    cudaMemPool_t pool = nullptr;
    forget(cudaDeviceGetDefaultMemPool(&pool, device));
    if (pool != nullptr) forget(cudaMemPoolTrimTo(pool, 0));
}

// The driver's functions that reserve addresses, allocate memory, and map it.
struct Mapping {
    decltype(&cuMemGetAllocationGranularity) granularity =
        cuda::driver_function<decltype(granularity)>("cuMemGetAllocationGranularity");
    decltype(&cuMemAddressReserve) reserve =
        cuda::driver_function<decltype(reserve)>("cuMemAddressReserve");
    decltype(&cuMemAddressFree) unreserve =
        cuda::driver_function<decltype(unreserve)>("cuMemAddressFree");
    decltype(&cuMemCreate) create = cuda::driver_function<decltype(create)>("cuMemCreate");
    decltype(&cuMemRelease) release = cuda::driver_function<decltype(release)>("cuMemRelease");
    decltype(&cuMemMap) map = cuda::driver_function<decltype(map)>("cuMemMap");
    decltype(&cuMemUnmap) unmap = cuda::driver_function<decltype(unmap)>("cuMemUnmap");
};

const Mapping& mapping() {
    static const Mapping all;
    return all;
}

CUmemAllocationProp on_device(int device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    return properties;
}

std::size_t whole_granules(int device, std::size_t bytes) {
    if (!gpu::device(device).vmm) {
        throw Error(Failure::other, "cuMemCreate", cudaErrorNotSupported, "cudaErrorNotSupported");
    }
    const CUmemAllocationProp properties = on_device(device);
    std::size_t granule = 0;
    check(mapping().granularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
    return (bytes + granule - 1) / granule * granule;
}

// Undone step by step if a later step fails.
std::byte* allocate_mapped(int device, std::size_t bytes) {
    const Mapping& driver = mapping();
    CUdeviceptr address = 0;
    check(driver.reserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve");
    const auto unreserve = [&] { driver.unreserve(address, bytes); };
    const CUmemAllocationProp properties = on_device(device);
    CUmemGenericAllocationHandle memory = 0;
    CUresult code = driver.create(&memory, bytes, &properties, 0);
    if (code != CUDA_SUCCESS) {
        unreserve();
        check(code, "cuMemCreate");
    }
    code = driver.map(address, bytes, 0, memory, 0);
    driver.release(memory);  // the mapping keeps it
    if (code != CUDA_SUCCESS) {
        unreserve();
        check(code, "cuMemMap");
    }
    auto* const data = reinterpret_cast<std::byte*>(address);
    try {
        cuda::grant_mapped(device, data, bytes);
    } catch (...) {
        driver.unmap(address, bytes);
        unreserve();
        throw;
    }
    return data;
}

void free_mapped(std::byte* data, std::size_t bytes) noexcept {
    cuda::forget_mapped(data);
    const auto address = reinterpret_cast<CUdeviceptr>(data);
    mapping().unmap(address, bytes);
    mapping().unreserve(address, bytes);
}

}  // namespace

// Only cudaFree of plain memory waits for the device.
void detail::DeviceDeleter::operator()(std::byte* data) const noexcept {
    forget(cudaSetDevice(device));
    if (use != DeviceUse::plain) forget(cudaDeviceSynchronize());
    switch (use) {
        case DeviceUse::plain: forget(cudaFree(data)); break;
        case DeviceUse::pool: free_pool(device, data); break;
        case DeviceUse::mapped: free_mapped(data, bytes); break;
        case DeviceUse::foreign: cuda::close_foreign(data); break;
    }
}

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes, DeviceUse use_for)
    : bytes_(bytes), data_(nullptr, {.device = device, .use = use_for, .bytes = bytes}) {
    use(device);
    switch (use_for) {
        case DeviceUse::plain: data_.reset(allocate_plain(bytes)); break;
        case DeviceUse::pool: data_.reset(allocate_pool(device, bytes)); break;
        case DeviceUse::mapped:
            data_.get_deleter().bytes = whole_granules(device, bytes);
            data_.reset(allocate_mapped(device, data_.get_deleter().bytes));
            break;
        case DeviceUse::foreign: data_.reset(cuda::open_foreign(device, bytes)); break;
    }
}

std::byte* allocate_async(std::size_t bytes, const Stream& stream) {
    cuda::default_pool(stream.device());
    use(stream.device());
    void* data = nullptr;
    WAYWISER_CUDA(cudaMallocAsync(&data, bytes, raw(stream)));
    return static_cast<std::byte*>(data);
}

void free_async(std::byte* data, const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaFreeAsync(data, raw(stream)));
}

}  // namespace waywiser::gpu
