// The CUDA runtime of the tests: each call makes one of the driver.
#include <atomic>
#include <cstdint>
#include <thread>

#include "fake_tools.hpp"

namespace fake::runtime {

namespace {

constexpr std::uint32_t kRuntime = 2;
enum Kind : std::int32_t { kToDevice = 1, kToHost = 2 };

struct CopyParameters {
    void* to;
    const void* from;
    std::uint64_t bytes;
    std::int32_t kind;
    void* stream;
};

int copy_asynchronously(void* own) {
    const auto& p = *static_cast<CopyParameters*>(own);
    if (p.kind == kToDevice) return cuMemcpyHtoDAsync_v2(p.to, p.from, p.bytes, p.stream);
    if (p.kind == kToHost) return cuMemcpyDtoHAsync_v2(p.to, p.from, p.bytes, p.stream);
    return cuMemcpyAsync(p.to, p.from, p.bytes, p.stream);
}

int copy(void* own) {
    const auto& p = *static_cast<CopyParameters*>(own);
    if (p.kind == kToDevice) return cuMemcpyHtoD_v2(p.to, p.from, p.bytes);
    if (p.kind == kToHost) return cuMemcpyDtoH_v2(p.to, p.from, p.bytes);
    return cuMemcpyAsync(p.to, p.from, p.bytes, nullptr);
}

}  // namespace

extern "C" {

int cudaMemcpy(void* to, const void* from, std::uint64_t bytes, std::int32_t kind) {
    cuInit(0);
    CopyParameters parameters{to, from, bytes, kind, nullptr};
    return fake_call(kRuntime, 31, &parameters, copy, &parameters);
}

int cudaMemcpyAsync(void* to, const void* from, std::uint64_t bytes, std::int32_t kind,
                    void* stream) {
    cuInit(0);
    CopyParameters parameters{to, from, bytes, kind, stream};
    return fake_call(kRuntime, 41, &parameters, copy_asynchronously, &parameters);
}

// Copies when another thread says so, without a return to Python in between.
void fake_copies(void* to, const void* from, std::uint64_t bytes, int count,
                 std::atomic<int>* begin, std::atomic<int>* done) {
    while (begin->load() == 0) std::this_thread::yield();
    for (int i = 0; i < count; ++i) cudaMemcpy(to, from, bytes, kToDevice);
    done->store(1);
}

// Says so, and returns when they are done. Called with the GIL, it is held all the time.
void fake_hold(std::atomic<int>* begin, std::atomic<int>* done) {
    begin->store(1);
    while (done->load() == 0) std::this_thread::yield();
}

int cudaStreamSynchronize(void* stream) {
    return fake_call(kRuntime, 131, nullptr, cuStreamSynchronize, stream);
}
}

}  // namespace fake::runtime
