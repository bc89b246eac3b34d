// The gpu seam on the CUDA runtime, which is linked statically and opens the driver when first
// used, so that the same build runs with and without a GPU. This file: the devices, and what every
// launch needs from them.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>

#include "cuda_call.hpp"
#include "cuda_uuid.hpp"
#include "launch.hpp"

namespace waywiser::gpu {

using cuda::check;
using cuda::use;

namespace {

std::string version_text(int version) {
    return version == 0
               ? std::string()
               : std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Within a major version, a driver runs the programs of all runtimes.
std::string needed_driver() { return version_text(CUDART_VERSION / 1000 * 1000); }

// The runtime has no name for it.
bool maps_memory(int device) {
    static const auto attribute =
        cuda::driver_function<decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute");
    int has = 0;
    return attribute != nullptr &&
           attribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ==
               CUDA_SUCCESS &&
           has != 0;
}

std::atomic<pid_t> user{0};  // the process in which the runtime has found a GPU

// Asks the runtime. CUDA works in no child of a process that has used it, but the runtime answers
// this there from what it remembers of the parent.
cudaError_t count_devices(int& count) {
    const pid_t known = user;
    if (known != 0 && known != getpid()) return cudaErrorInitializationError;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
        cudaGetLastError();
    } else if (count > 0 && known == 0) {
        user = getpid();
    }
    return code;
}

}  // namespace

std::string backend() { return "cuda"; }
std::string runtime_version() { return version_text(CUDART_VERSION); }
std::string architectures() { return WAYWISER_ARCHITECTURES; }

std::string driver_version() {
    int version = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess) cudaGetLastError();
    return version_text(version);
}

std::string unavailable_reason() {
    int count = 0;
    const cudaError_t code = count_devices(count);
    if (code == cudaSuccess && count > 0) return {};
    if (code == cudaErrorInitializationError) return kForkedReason;
    const std::string driver = driver_version();
    if (driver.empty()) {
        return "no NVIDIA driver was found: install one that supports CUDA " + needed_driver();
    }
    if (code == cudaErrorInsufficientDriver) {
        return "the NVIDIA driver supports CUDA " + driver + " and this build needs " +
               needed_driver() +
               ": install a newer driver, or a released wheel of Waywiser, which needs R525 or "
               "later";
    }
    if (code == cudaSuccess || code == cudaErrorNoDevice) {
        return "the NVIDIA driver shows no device: check CUDA_VISIBLE_DEVICES and nvidia-smi";
    }
    if (code == cudaErrorSystemNotReady) {
        return "the NVIDIA driver waits for the links between the GPUs to be set up: start "
               "nvidia-fabricmanager, of the driver's version";
    }
    return std::string("the CUDA runtime does not start: ") + cudaGetErrorString(code) +
           ": check nvidia-smi";
}

int device_count() {
    int count = 0;
    return count_devices(count) == cudaSuccess ? count : 0;
}

Device device(int index) {
    cudaDeviceProp properties{};
    WAYWISER_CUDA(cudaGetDeviceProperties(&properties, index));
    std::array<char, 32> pci{};
    WAYWISER_CUDA(cudaDeviceGetPCIBusId(pci.data(), pci.size(), index));
    std::string address(pci.data());
    for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return {.index = index,
            .name = properties.name,
            .uuid = cuda::uuid_text(properties.uuid),
            .pci = address,
            .compute_major = properties.major,
            .compute_minor = properties.minor,
            .multiprocessors = properties.multiProcessorCount,
            .memory_bytes = properties.totalGlobalMem,
            .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize),
            .pageable_access = properties.pageableMemoryAccess != 0,
            .concurrent_managed = properties.concurrentManagedAccess != 0,
            .memory_pools = properties.memoryPoolsSupported != 0,
            .vmm = maps_memory(index),
            .ipc = properties.ipcEventSupported != 0,
            .host_native_atomics = properties.hostNativeAtomicSupported != 0};
}

bool can_access_peer(int from, int to) {
    int can = 0;
    WAYWISER_CUDA(cudaDeviceCanAccessPeer(&can, from, to));
    return can != 0;
}

std::size_t free_bytes(int device) {
    use(device);
    std::size_t free = 0;
    std::size_t total = 0;
    WAYWISER_CUDA(cudaMemGetInfo(&free, &total));
    return free;
}

void synchronize_device(int device) {
    use(device);
    WAYWISER_CUDA(cudaDeviceSynchronize());
}

void detail::before_launch(const Stream& stream) { use(stream.device()); }
void detail::after_launch(int code, const char* what, std::source_location where) {
    check(static_cast<cudaError_t>(code), what, where);
}

}  // namespace waywiser::gpu
