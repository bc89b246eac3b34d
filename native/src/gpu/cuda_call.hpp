// A call to the CUDA runtime or driver: checked, named, and on the right device. Only the files of
// the seam's CUDA side include this.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "gpu.hpp"

namespace waywiser::gpu::cuda {

// What a call leaves behind that nobody hears of must not be taken for a later launch's error.
void forget(cudaError_t code) noexcept;
// Throws gpu::Error where the call failed.
void check(cudaError_t code, const char* call,
           std::source_location where = std::source_location::current());
// The driver's results are the runtime's by number.
inline void check(CUresult code, const char* call,
                  std::source_location where = std::source_location::current()) {
    check(static_cast<cudaError_t>(code), call, where);
}
Failure classify(cudaError_t code);

void use(int device);

inline cudaStream_t raw(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
inline cudaEvent_t raw(const Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

// A function of the driver as CUDA 12.0 has it, or nullptr where the driver has none: nothing here
// links libcuda.
void* driver_entry(const char* name);
template <class Function>
Function driver_function(const char* name) {
    return reinterpret_cast<Function>(driver_entry(name));
}

}  // namespace waywiser::gpu::cuda

#define WAYWISER_CUDA(call) ::waywiser::gpu::cuda::check((call), #call)
