// The gpu seam on the CUDA runtime, linked statically: it opens the driver when first used, so the
// same build runs with and without a GPU. Driver calls are fetched through the runtime.
#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

#include "gpu.hpp"
#include "launch.hpp"

namespace waywiser::gpu {
namespace {

Failure classify(cudaError_t code) {
    switch (code) {
        case cudaErrorMemoryAllocation: return Failure::out_of_memory;
        case cudaErrorNoDevice:
        case cudaErrorInsufficientDriver:
        case cudaErrorSystemDriverMismatch:
        case cudaErrorCompatNotSupportedOnDevice:
        case cudaErrorInitializationError:
        case cudaErrorSystemNotReady:
        case cudaErrorDevicesUnavailable: return Failure::unavailable;
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorIllegalInstruction:
        case cudaErrorHardwareStackError:
        case cudaErrorAssert:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorContextIsDestroyed:
        case cudaErrorMpsClientTerminated:
        case cudaErrorExternalDevice:
        case cudaErrorCudartUnloading:
        case cudaErrorUnknown: return Failure::sticky;
        default: break;
    }
    // By number, since the oldest toolkits that can be built with do not name them.
    constexpr int kContained = 226;
    constexpr int kTensorMemoryLeak = 721;
    const int number = static_cast<int>(code);
    return number == kContained || number == kTensorMemoryLeak ? Failure::sticky : Failure::other;
}

// What a call leaves behind that nobody hears of must not be taken for a later launch's error.
void forget(cudaError_t code) noexcept {
    if (code != cudaSuccess) cudaGetLastError();
}

void check(cudaError_t code, const char* call,
           std::source_location where = std::source_location::current()) {
    if (code == cudaSuccess) return;
    forget(code);  // a lost context keeps it anyway
    throw Error(classify(code), call, static_cast<int>(code), cudaGetErrorName(code), where);
}

#define WAYWISER_CUDA(call) check((call), #call)

void use(int device) { WAYWISER_CUDA(cudaSetDevice(device)); }

cudaStream_t raw(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
cudaEvent_t raw(const Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

std::string version_text(int version) {
    return version == 0
               ? std::string()
               : std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
    static constexpr const char* kHex = "0123456789abcdef";
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        text += kHex[byte >> 4];
        text += kHex[byte & 15];
    }
    return text;
}

}  // namespace

// --- devices -------------------------------------------------------------------------------

std::string backend() { return "cuda"; }
std::string runtime_version() { return version_text(CUDART_VERSION); }

std::string driver_version() {
    int version = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess) cudaGetLastError();
    return version_text(version);
}

std::string unavailable_reason() {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count > 0) return {};
    cudaGetLastError();
    const std::string driver = driver_version();
    if (driver.empty()) {
        return "no NVIDIA driver was found: install one that supports CUDA " + runtime_version();
    }
    if (code == cudaErrorInsufficientDriver) {
        return "the NVIDIA driver supports CUDA " + driver + " and this build needs " +
               runtime_version() + ": update the driver, or build against an older toolkit";
    }
    if (code == cudaSuccess || code == cudaErrorNoDevice) {
        return "the NVIDIA driver shows no device: check CUDA_VISIBLE_DEVICES and nvidia-smi";
    }
    return std::string("the CUDA runtime does not start: ") + cudaGetErrorString(code) +
           ": check nvidia-smi";
}

int device_count() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return count;
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
            .uuid = uuid_text(properties.uuid),
            .pci = address,
            .compute_major = properties.major,
            .compute_minor = properties.minor,
            .multiprocessors = properties.multiProcessorCount,
            .memory_bytes = properties.totalGlobalMem,
            .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize),
            .pageable_access = properties.pageableMemoryAccess != 0,
            .concurrent_managed = properties.concurrentManagedAccess != 0};
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

// --- streams and events --------------------------------------------------------------------

void detail::StreamDeleter::operator()(void* handle) const noexcept {
    forget(cudaStreamDestroy(static_cast<cudaStream_t>(handle)));
}
void detail::EventDeleter::operator()(void* handle) const noexcept {
    forget(cudaEventDestroy(static_cast<cudaEvent_t>(handle)));
}

Stream::Stream(int device) : device_(device) {
    use(device);
    cudaStream_t stream = nullptr;
    WAYWISER_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    handle_.reset(stream);
}

void Stream::synchronize() const { WAYWISER_CUDA(cudaStreamSynchronize(raw(*this))); }

bool Stream::done() const {
    const cudaError_t code = cudaStreamQuery(raw(*this));
    if (code == cudaErrorNotReady) {
        forget(code);  // no error, but left behind like one
        return false;
    }
    check(code, "cudaStreamQuery");
    return true;
}

Event::Event(int device, EventUse use_for) {
    use(device);
    cudaEvent_t event = nullptr;
    const unsigned flags = use_for == EventUse::timing ? cudaEventDefault : cudaEventDisableTiming;
    WAYWISER_CUDA(cudaEventCreateWithFlags(&event, flags));
    handle_.reset(event);
}

void Event::record(const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaEventRecord(raw(*this), raw(stream)));
}

void Event::synchronize() const { WAYWISER_CUDA(cudaEventSynchronize(raw(*this))); }

bool Event::done() const {
    const cudaError_t code = cudaEventQuery(raw(*this));
    if (code == cudaErrorNotReady) {
        forget(code);  // no error, but left behind like one
        return false;
    }
    check(code, "cudaEventQuery");
    return true;
}

void wait(const Stream& stream, const Event& event) {
    use(stream.device());
    WAYWISER_CUDA(cudaStreamWaitEvent(raw(stream), raw(event), 0));
}

double seconds_between(const Event& start, const Event& stop) {
    float milliseconds = 0;
    WAYWISER_CUDA(cudaEventElapsedTime(&milliseconds, raw(start), raw(stop)));
    return static_cast<double>(milliseconds) * 1e-3;
}

// --- memory --------------------------------------------------------------------------------

void detail::DeviceDeleter::operator()(std::byte* data) const noexcept {
    forget(cudaSetDevice(device));
    forget(cudaFree(data));
}
void detail::HostDeleter::operator()(std::byte* data) const noexcept { forget(cudaFreeHost(data)); }
void detail::RegistrationDeleter::operator()(std::byte* data) const noexcept {
    forget(cudaHostUnregister(data));
}

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes, DeviceUse)
    : bytes_(bytes), data_(nullptr, {.device = device}) {
    use(device);
    void* data = nullptr;
    WAYWISER_CUDA(cudaMalloc(&data, bytes));
    data_.reset(static_cast<std::byte*>(data));
}

HostBuffer::HostBuffer(std::size_t bytes, HostUse use_for) : bytes_(bytes) {
    unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped;
    if (use_for == HostUse::write_combined) flags |= cudaHostAllocWriteCombined;
    void* data = nullptr;
    WAYWISER_CUDA(cudaHostAlloc(&data, bytes, flags));
    data_.reset(static_cast<std::byte*>(data));
}

Registration::Registration(std::byte* data, std::size_t bytes) {
    WAYWISER_CUDA(cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
    data_.reset(data);
}

std::byte* device_address(std::byte* host, int device) {
    use(device);
    void* address = nullptr;
    WAYWISER_CUDA(cudaHostGetDevicePointer(&address, host, 0));
    return static_cast<std::byte*>(address);
}

void enable_peer_access(int from, int to) {
    use(from);
    const cudaError_t code = cudaDeviceEnablePeerAccess(to, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
        return;
    }
    check(code, "cudaDeviceEnablePeerAccess");
}

// --- copies --------------------------------------------------------------------------------

void copy_async(void* destination, const void* source, std::size_t bytes, const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, raw(stream)));
}

void copy_peer_async(void* destination, int destination_device, const void* source,
                     int source_device, std::size_t bytes, const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaMemcpyPeerAsync(destination, destination_device, source, source_device, bytes,
                                      raw(stream)));
}

void copy_sync(void* destination, const void* source, std::size_t bytes, int device) {
    use(device);
    WAYWISER_CUDA(cudaMemcpy(destination, source, bytes, cudaMemcpyDefault));
    // The call may return with a DMA from pageable memory, or between devices, still on its way.
    WAYWISER_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
}

void fill_async(void* destination, unsigned char value, std::size_t bytes, const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaMemsetAsync(destination, value, bytes, raw(stream)));
}

// --- the gate ------------------------------------------------------------------------------

namespace {

using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

// The driver's stream wait on a value, or nullptr where the driver has none.
WaitValue wait_value() {
    static const WaitValue function = [] {
        void* entry = nullptr;
        cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
        const cudaError_t code = cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &entry,
                                                                  12000, cudaEnableDefault, &found);
#else
        const cudaError_t code =
            cudaGetDriverEntryPoint("cuStreamWaitValue32", &entry, cudaEnableDefault, &found);
#endif
        if (code != cudaSuccess || found != cudaDriverEntryPointSuccess) {
            cudaGetLastError();
            entry = nullptr;
        }
        return reinterpret_cast<WaitValue>(entry);
    }();
    return function;
}

__global__ void spin_until(const volatile unsigned* word, unsigned epoch) {
    while (static_cast<int>(*word - epoch) < 0) {
    }
}

}  // namespace

struct Gate::State {
    HostBuffer word{sizeof(unsigned), HostUse::portable};
    std::atomic<unsigned> epoch{0};  // the value that opens what is closed now
    std::atomic<bool> closed{false};
    bool by_value = wait_value() != nullptr;

    std::atomic_ref<unsigned> value() {
        return std::atomic_ref<unsigned>(*reinterpret_cast<unsigned*>(word.data()));
    }
};

Gate::Gate() : state_(std::make_unique<State>()) { state_->value().store(0); }
Gate::~Gate() { open(); }

void Gate::close(const Stream& stream) {
    use(stream.device());
    if (!state_->closed.exchange(true)) ++state_->epoch;
    const unsigned epoch = state_->epoch;
    auto* word = reinterpret_cast<unsigned*>(state_->word.data());  // the devices' address too
    if (state_->by_value) {
        const CUresult code = wait_value()(raw(stream), reinterpret_cast<CUdeviceptr>(word), epoch,
                                           CU_STREAM_WAIT_VALUE_GEQ);
        if (code == CUDA_SUCCESS) return;
        if (code != CUDA_ERROR_NOT_SUPPORTED && code != CUDA_ERROR_INVALID_VALUE) {
            check(static_cast<cudaError_t>(code), "cuStreamWaitValue32");  // the same numbers
        }
        state_->by_value = false;
    }
    spin_until<<<1, 1, 0, raw(stream)>>>(word, epoch);
    WAYWISER_CUDA(cudaGetLastError());
}

void Gate::open() noexcept {
    state_->value().store(state_->epoch, std::memory_order_seq_cst);
    state_->closed.store(false);
}

std::string Gate::kind() const { return state_->by_value ? "stream-wait-value" : "spin-kernel"; }

// --- launches ------------------------------------------------------------------------------

void detail::before_launch(const Stream& stream) { use(stream.device()); }
void detail::after_launch(const char* what, std::source_location where) {
    check(cudaGetLastError(), what, where);
}

}  // namespace waywiser::gpu
