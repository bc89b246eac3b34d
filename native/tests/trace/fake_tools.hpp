// What the driver of the tests and the CUPTI of the tests say to each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake {

// An activity of a GPU that has no memory of its own. Times: CLOCK_MONOTONIC.
struct Event {
    enum What : std::uint32_t { Copy = 1, Set = 2, Kernel = 10, PeerCopy = 22, Managed = 25 };
    What what = Copy;
    std::uint32_t direction = 0, from_kind = 0, to_kind = 0;  // numbers of CUPTI
    std::uint32_t gpu = 0, from_gpu = 0, to_gpu = 0, stream = 7, correlation = 0;
    std::uint32_t graph = 0, counter = 0;
    std::uint64_t bytes = 0, start = 0, end = 0, count = 0;
    bool asynchronous = false;
    const char* name = nullptr;
};

struct Tools {
    // The beginning and the end of a call.
    void (*call)(bool begins, std::uint32_t domain, std::uint32_t id, const void* parameters,
                 const int* result, std::uint32_t correlation) = nullptr;
    void (*event)(const Event& event) = nullptr;
};

// Of the driver: calls `body` between what the tools see.
using Body = int (*)(void* own);

// Of CUPTI.
using Callback = void (*)(void*, std::uint32_t, std::uint32_t, const void*);
using Needed = void (*)(std::uint8_t**, std::size_t*, std::size_t*);
using Filled = void (*)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t);

}  // namespace fake

// What programs and other libraries of the tests call of the driver, the runtime and CUPTI.
extern "C" {
void fake_set_tools(const fake::Tools* tools);
int fake_call(std::uint32_t domain, std::uint32_t id, const void* parameters, fake::Body body,
              void* own);
void* fake_device_memory(std::uint64_t bytes, std::uint32_t gpu);
int cuInit(unsigned flags);
int cuMemcpyHtoD_v2(void* to, const void* from, std::uint64_t bytes);
int cuMemcpyHtoDAsync_v2(void* to, const void* from, std::uint64_t bytes, void* stream);
int cuMemcpyDtoH_v2(void* to, const void* from, std::uint64_t bytes);
int cuMemcpyDtoHAsync_v2(void* to, const void* from, std::uint64_t bytes, void* stream);
int cuMemcpyAsync(void* to, const void* from, std::uint64_t bytes, void* stream);
int cuStreamSynchronize(void* stream);
int cudaMemcpy(void* to, const void* from, std::uint64_t bytes, std::int32_t kind);
int cudaMemcpyAsync(void* to, const void* from, std::uint64_t bytes, std::int32_t kind,
                    void* stream);
int cudaStreamSynchronize(void* stream);
int cuptiSubscribe(void** subscriber, fake::Callback callback, void* own);
int cuptiEnableCallback(std::uint32_t enable, void* subscriber, std::uint32_t domain,
                        std::uint32_t id);
int cuptiActivityRegisterCallbacks(fake::Needed needed, fake::Filled filled);
int cuptiActivityFlushAll(std::uint32_t force);
int cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, std::uint8_t** record);
}
