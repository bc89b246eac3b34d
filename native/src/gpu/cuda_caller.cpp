// The caller's objects: pointers, streams, the current context of a thread.
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "cuda_call.hpp"

namespace waywiser::gpu {
namespace {

using cuda::check;
using cuda::forget;

struct Driver {
    decltype(&cuCtxGetCurrent) get_current =
        cuda::driver_function<decltype(get_current)>("cuCtxGetCurrent");
    decltype(&cuCtxSetCurrent) set_current =
        cuda::driver_function<decltype(set_current)>("cuCtxSetCurrent");
    decltype(&cuCtxGetDevice) get_device =
        cuda::driver_function<decltype(get_device)>("cuCtxGetDevice");
    decltype(&cuStreamGetCtx) stream_context =
        cuda::driver_function<decltype(stream_context)>("cuStreamGetCtx");
    decltype(&cuPointerGetAttributes) pointer_attributes =
        cuda::driver_function<decltype(pointer_attributes)>("cuPointerGetAttributes");
    decltype(&cuDevicePrimaryCtxGetState) primary_state =
        cuda::driver_function<decltype(primary_state)>("cuDevicePrimaryCtxGetState");
    decltype(&cuDevicePrimaryCtxRetain) retain_primary =
        cuda::driver_function<decltype(retain_primary)>("cuDevicePrimaryCtxRetain");
    decltype(&cuDevicePrimaryCtxRelease) release_primary =
        cuda::driver_function<decltype(release_primary)>("cuDevicePrimaryCtxRelease");

    [[nodiscard]] bool complete() const {
        return get_current != nullptr && set_current != nullptr && get_device != nullptr &&
               stream_context != nullptr && pointer_attributes != nullptr &&
               primary_state != nullptr && retain_primary != nullptr && release_primary != nullptr;
    }
};

const Driver& driver() {
    static const Driver all;
    return all;
}

// Whether the driver is loaded and can be called; looked up once.
bool available() {
    static const bool is = driver().complete();
    return is;
}

bool is_default(void* stream) {
    return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

// The primary contexts that were seen, by device. A program that resets a GPU may get another
// context at the same address; only one of another GPU would be mistaken, and rejected by the
// runtime.
class PrimaryContexts {
public:
    // -1 if the context is not known.
    [[nodiscard]] int device_of(CUcontext context) const {
        for (std::size_t i = 0; i < known_.size(); ++i) {
            if (known_[i].load(std::memory_order_relaxed) == context) return static_cast<int>(i);
        }
        return -1;
    }
    void add(CUcontext context, int device) {
        const auto at = static_cast<std::size_t>(device);
        if (at < known_.size()) known_[at].store(context, std::memory_order_relaxed);
    }

private:
    std::array<std::atomic<CUcontext>, 32> known_{};
};

PrimaryContexts& primary_contexts() {
    static PrimaryContexts all;
    return all;
}

// The device of a context, queried with that context current.
int device_of(CUcontext context) {
    CUcontext before = nullptr;
    check(driver().get_current(&before), "cuCtxGetCurrent");
    check(driver().set_current(context), "cuCtxSetCurrent");
    CUdevice device = -1;
    const CUresult code = driver().get_device(&device);
    driver().set_current(before);
    check(code, "cuCtxGetDevice");
    return static_cast<int>(device);
}

bool is_primary(CUcontext context, int device) {
    unsigned flags = 0;
    int active = 0;
    if (driver().primary_state(device, &flags, &active) != CUDA_SUCCESS || active == 0) {
        return false;
    }
    CUcontext primary = nullptr;
    if (driver().retain_primary(&primary, device) != CUDA_SUCCESS) return false;
    driver().release_primary(device);
    return primary == context;
}

}  // namespace

PointerInfo pointer_info(const void* data) {
    if (!available()) return {};
    unsigned type = 0;
    unsigned managed = 0;
    int ordinal = -1;
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    std::array attributes{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                          CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    std::array<void*, 5> values{&type, &managed, &ordinal, &start, &bytes};
    const CUresult code =
        driver().pointer_attributes(static_cast<unsigned>(attributes.size()), attributes.data(),
                                    values.data(), reinterpret_cast<CUdeviceptr>(data));
    // The driver is not in use: no memory can be its own.
    if (code == CUDA_ERROR_NOT_INITIALIZED || code == CUDA_ERROR_INVALID_CONTEXT ||
        code == CUDA_ERROR_INVALID_VALUE) {
        return {};
    }
    check(code, "cuPointerGetAttributes");
    PointerInfo info{.start = reinterpret_cast<std::byte*>(start), .bytes = bytes};
    if (managed != 0) {
        info.kind = PointerKind::managed;
    } else if (type == CU_MEMORYTYPE_HOST) {
        info.kind = PointerKind::pinned;
    } else if (type == CU_MEMORYTYPE_DEVICE) {
        info.kind = PointerKind::device;
        info.device = ordinal;
    } else {
        return {};
    }
    return info;
}

StreamInfo stream_info(void* stream, int otherwise) {
    StreamInfo info{.device = otherwise};
    if (!available()) return info;
    CUcontext context = nullptr;
    if (is_default(stream)) {
        check(driver().get_current(&context), "cuCtxGetCurrent");
        if (context == nullptr) return info;
    } else {
        check(driver().stream_context(static_cast<CUstream>(stream), &context), "cuStreamGetCtx");
    }
    info.capturing = capturing(stream);
    if (const int known = primary_contexts().device_of(context); known >= 0) {
        info.device = known;
        return info;
    }
    info.device = device_of(context);
    info.primary = is_primary(context, info.device);
    if (info.primary) primary_contexts().add(context, info.device);
    return info;
}

std::vector<int> active_devices() {
    std::vector<int> found;
    if (!available()) return found;
    for (int device = 0; device < device_count(); ++device) {
        unsigned flags = 0;
        int active = 0;
        if (driver().primary_state(device, &flags, &active) == CUDA_SUCCESS && active != 0) {
            found.push_back(device);
        }
    }
    return found;
}

bool capturing(void* stream) noexcept {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t code = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
    if (code == cudaErrorStreamCaptureImplicit) {
        forget(code);
        return true;
    }
    forget(code);  // the next call rejects an invalid handle
    return status != cudaStreamCaptureStatusNone;
}

bool is_blocking(void* stream) noexcept {
    if (is_default(stream)) return true;
    unsigned flags = cudaStreamDefault;
    const cudaError_t code = cudaStreamGetFlags(static_cast<cudaStream_t>(stream), &flags);
    forget(code);
    return code != cudaSuccess || (flags & cudaStreamNonBlocking) == 0;
}

bool has_context() noexcept {
    if (!available()) return false;
    CUcontext context = nullptr;
    return driver().get_current(&context) == CUDA_SUCCESS && context != nullptr;
}

bool has_context_of(int device) noexcept {
    int current = -1;
    return has_context() && cudaGetDevice(&current) == cudaSuccess && current == device;
}

bool is_idle(void* stream) {
    const cudaError_t code = cudaStreamQuery(static_cast<cudaStream_t>(stream));
    if (code == cudaErrorNotReady) {
        forget(code);
        return false;
    }
    check(code, "cudaStreamQuery");
    return true;
}

bool try_copy_on(void* destination, const void* source, std::size_t bytes, void* stream) {
    const cudaError_t code = cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault,
                                             static_cast<cudaStream_t>(stream));
    if (code == cudaSuccess) return true;
    if (code == cudaErrorInvalidValue) {
        forget(code);
        return false;
    }
    check(code, "cudaMemcpyAsync");
    return false;
}

CallerState::CallerState() {
    if (!available()) return;
    CUcontext context = nullptr;
    if (driver().get_current(&context) != CUDA_SUCCESS) return;  // the driver is not in use yet
    context_ = context;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    forget(cudaThreadExchangeStreamCaptureMode(&mode));
    capture_mode_ = static_cast<int>(mode);
    saved_ = true;
}

CallerState::~CallerState() {
    if (!available()) return;
    driver().set_current(static_cast<CUcontext>(context_));
    if (!saved_) return;
    auto mode = static_cast<cudaStreamCaptureMode>(capture_mode_);
    forget(cudaThreadExchangeStreamCaptureMode(&mode));
}

void relax_capture() {
    if (!available()) return;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    forget(cudaThreadExchangeStreamCaptureMode(&mode));
}

}  // namespace waywiser::gpu
