#include "cuda_call.hpp"

#include <dlfcn.h>

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
    std::string name = cudaGetErrorName(code);
    if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion) {
        name += ": this build has no code for this GPU and driver, only for " + architectures() +
                "; 'make WAYWISER_CUDA=ON build' on this machine builds for its GPUs";
    }
    throw Error(classify(code), call, static_cast<int>(code), name, where);
}

void use(int device) { WAYWISER_CUDA(cudaSetDevice(device)); }

namespace {

using GetAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                CUdriverProcAddressQueryResult*);

// The driver's own table of functions; the runtime of a toolkit before 12.5 cannot ask it for a
// version. The library is the one that the runtime has open.
GetAddress get_address() {
    static const auto function = [] {
        void* library = dlopen("libcuda.so.1", RTLD_NOW);
        return library == nullptr
                   ? nullptr
                   : reinterpret_cast<GetAddress>(dlsym(library, "cuGetProcAddress_v2"));
    }();
    return function;
}

}  // namespace

void* driver_entry(const char* name, int version) {
    if (get_address() == nullptr) return nullptr;
    void* entry = nullptr;
    CUdriverProcAddressQueryResult found{};
    const CUresult code = get_address()(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    const bool has = code == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS;
    return has ? entry : nullptr;
}

}  // namespace waywiser::gpu::cuda
