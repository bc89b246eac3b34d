// Calls of the CUDA runtime or driver: checked, named in errors, and on the right device. Only the
// CUDA files of the seam include this.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "gpu.hpp"

namespace waywiser::gpu::cuda {

// Clears the runtime's error state, so that an ignored error is not taken for one of a later
// launch.
void forget(cudaError_t code) noexcept;
// Throws gpu::Error if the call failed.
void check(cudaError_t code, const char* call,
           std::source_location where = std::source_location::current());
// The driver's results have the same numbers as the runtime's.
inline void check(CUresult code, const char* call,
                  std::source_location where = std::source_location::current()) {
    check(static_cast<cudaError_t>(code), call, where);
}
Failure classify(cudaError_t code);

void use(int device);

inline cudaStream_t raw(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
inline cudaEvent_t raw(const Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

// The driver (R525) that all builds run with.
constexpr int kOldestDriver = 12000;

// A function of the driver as CUDA `version` declares it, or nullptr if the driver is older. What
// is newer than kOldestDriver is asked for here and not called in the runtime: whether it exists
// depends on the driver, not on the toolkit of the build. Nothing here links libcuda.
void* driver_entry(const char* name, int version);
template <class Function>
Function driver_function(const char* name, int version = kOldestDriver) {
    return reinterpret_cast<Function>(driver_entry(name, version));
}

}  // namespace waywiser::gpu::cuda

#define WAYWISER_CUDA(call) ::waywiser::gpu::cuda::check((call), #call)
