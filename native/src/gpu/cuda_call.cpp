#include "cuda_call.hpp"

namespace waywiser::gpu::cuda {

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
    // By number, since the oldest supported toolkits do not name them.
    constexpr int kContained = 226;
    constexpr int kTensorMemoryLeak = 721;
    const int number = static_cast<int>(code);
    return number == kContained || number == kTensorMemoryLeak ? Failure::sticky : Failure::other;
}

// Clears the runtime's error state, so that an ignored error is not taken for one of a later
// launch.
void forget(cudaError_t code) noexcept {
    if (code != cudaSuccess) cudaGetLastError();
}

void check(cudaError_t code, const char* call, std::source_location where) {
    if (code == cudaSuccess) return;
    forget(code);  // a lost context keeps it anyway
    throw Error(classify(code), call, static_cast<int>(code), cudaGetErrorName(code), where);
}

void use(int device) { WAYWISER_CUDA(cudaSetDevice(device)); }

void* driver_entry(const char* name) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    constexpr unsigned kVersion = 12000;
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion(name, &entry, kVersion, cudaEnableDefault, &found);
#else
    const cudaError_t code = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
    if (code == cudaSuccess && found == cudaDriverEntryPointSuccess) return entry;
    forget(code);
    return nullptr;
}

}  // namespace waywiser::gpu::cuda
