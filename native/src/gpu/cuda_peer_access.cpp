#include "cuda_peer_access.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace waywiser::gpu::cuda {
namespace {

struct Mapped {
    int device = 0;
    std::size_t bytes = 0;
};

struct Reach {
    std::mutex mutex;
    std::set<std::pair<int, int>> peers;  // from, to
    std::map<int, cudaMemPool_t> pools;   // in use
    std::map<std::byte*, Mapped> mapped;  // in use
};

// Never destroyed: memory may outlive main().
Reach& reach() {
    static Reach& all = *new Reach();
    return all;
}

void grant_pool(cudaMemPool_t pool, int from) {
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = from;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    WAYWISER_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
}

void grant_range(std::byte* data, std::size_t bytes, int from) {
    static const auto set_access = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = from;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(set_access(reinterpret_cast<CUdeviceptr>(data), bytes, &access, 1), "cuMemSetAccess");
}

}  // namespace

cudaMemPool_t default_pool(int device) {
    const std::lock_guard lock(reach().mutex);
    const auto known = reach().pools.find(device);
    if (known != reach().pools.end()) return known->second;
    cudaMemPool_t pool = nullptr;
    WAYWISER_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
    std::uint64_t keep_all = UINT64_MAX;
    WAYWISER_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
    for (const auto& [from, to] : reach().peers) {
        if (to == device) grant_pool(pool, from);
    }
    reach().pools.emplace(device, pool);
    return pool;
}

void grant_mapped(int device, std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(reach().mutex);
    grant_range(data, bytes, device);
    for (const auto& [from, to] : reach().peers) {
        if (to == device) grant_range(data, bytes, from);
    }
    reach().mapped.emplace(data, Mapped{device, bytes});
}

void forget_mapped(std::byte* data) noexcept {
    const std::lock_guard lock(reach().mutex);
    reach().mapped.erase(data);
}

namespace {

void enable_plain(int from, int to) {
    use(from);
    const cudaError_t code = cudaDeviceEnablePeerAccess(to, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) {
        forget(code);
        return;
    }
    check(code, "cudaDeviceEnablePeerAccess");
}

}  // namespace

}  // namespace waywiser::gpu::cuda

namespace waywiser::gpu {

void enable_peer_access(int from, int to) {
    cuda::Reach& all = cuda::reach();
    const std::lock_guard lock(all.mutex);
    if (all.peers.contains({from, to})) return;
    cuda::enable_plain(from, to);
    if (const auto pool = all.pools.find(to); pool != all.pools.end()) {
        cuda::grant_pool(pool->second, from);
    }
    for (const auto& [data, range] : all.mapped) {
        if (range.device == to) cuda::grant_range(data, range.bytes, from);
    }
    all.peers.emplace(from, to);  // not if that failed: the next call tries again
}

}  // namespace waywiser::gpu
