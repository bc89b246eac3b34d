// One launch for both implementations: nvcc compiles the body into a kernel; a host compiler makes
// a function that the fake runs on the stream's own thread. So an executor with a kernel is still
// one file.
//
//     struct Fill { unsigned* to; std::size_t n;
//         WAYWISER_ON_GPU void operator()(gpu::Thread t) const {
//             for (auto i = t.index; i < n; i += t.count) to[i] = 7u; } };
//     gpu::launch(stream, {.blocks = 256, .threads = 256}, Fill{pointer, n});
#pragma once

#include <atomic>

#include "gpu.hpp"

#if defined(__CUDACC__)
#define WAYWISER_ON_GPU __device__
#define WAYWISER_BOTH __host__ __device__
#else
#define WAYWISER_ON_GPU
#define WAYWISER_BOTH
#endif

namespace waywiser::gpu {

struct Shape {
    unsigned blocks = 1;
    unsigned threads = 1;  // per block
};

struct Thread {
    std::size_t index;  // among all threads of the launch
    std::size_t count;  // of all threads of the launch
};

// 16 bytes, aligned to 16: copied by a single load and a single store of a thread.
struct alignas(16) Quad {
    std::uint32_t x, y, z, w;
};

namespace detail {
// Sets the device of the stream, and throws if the launch failed with this error of the runtime.
void before_launch(const Stream& stream);
void after_launch(int code, const char* what, std::source_location where);
// The fake runs this on the stream's thread.
void run_on_host(const Stream& stream, std::function<void()> work);
}  // namespace detail

#if defined(__CUDACC__)

template <class Body>
__global__ void run_body(const Body body) {
    body(Thread{static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                static_cast<std::size_t>(gridDim.x) * blockDim.x});
}

// For a body that states the maximum threads of its blocks: the compiler limits its registers
// accordingly.
template <class Body>
__global__ void __launch_bounds__(Body::kMostThreads) run_bounded_body(const Body body) {
    body(Thread{static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                static_cast<std::size_t>(gridDim.x) * blockDim.x});
}

template <class Body>
void launch(const Stream& stream, Shape shape, const Body& body,
            std::source_location where = std::source_location::current()) {
    detail::before_launch(stream);
    auto* const handle = static_cast<cudaStream_t>(stream.handle());
    if constexpr (requires { Body::kMostThreads; }) {
        run_bounded_body<<<shape.blocks, shape.threads, 0, handle>>>(body);
    } else {
        run_body<<<shape.blocks, shape.threads, 0, handle>>>(body);
    }
    // Queried here: each shared library with kernels has its own copy of the runtime, and only that
    // copy knows the error of this launch.
    detail::after_launch(cudaGetLastError(), "kernel launch", where);
}

// Adds to a counter that threads of the launch share.
__device__ inline void add(unsigned long long* counter, unsigned long long amount) {
    atomicAdd(counter, amount);
}
// Lowers a value that threads of the launch share.
__device__ inline void lower(unsigned long long* value, unsigned long long to) {
    atomicMin(value, to);
}
// Adds to a counter that other devices and CPUs also add to, and returns its previous value.
__device__ inline unsigned long long add_system(unsigned long long* counter,
                                                unsigned long long amount) {
    return atomicAdd_system(counter, amount);
}
// Writes to the 4-byte word of a byte without changing its value: the fault of a write. A load and
// a store could fault twice; the compiler does not know that the operand is zero. At device scope,
// whose atomic faults drivers handle like those of a write.
__device__ inline void touch(std::byte* byte) {
    const auto word = reinterpret_cast<std::uintptr_t>(byte) & ~std::uintptr_t{3};
    unsigned zero = 0;
    asm volatile("mov.u32 %0, 0;" : "=r"(zero));
    atomicOr(reinterpret_cast<unsigned*>(word), zero);
}

#else

template <class Body>
void launch(const Stream& stream, Shape shape, const Body& body,
            std::source_location = std::source_location::current()) {
    const std::size_t count = static_cast<std::size_t>(shape.blocks) * shape.threads;
    detail::run_on_host(stream, [count, body] {
        for (std::size_t index = 0; index < count; ++index) body(Thread{index, count});
    });
}

inline void add(unsigned long long* counter, unsigned long long amount) { *counter += amount; }
inline void lower(unsigned long long* value, unsigned long long to) {
    if (to < *value) *value = to;
}
inline unsigned long long add_system(unsigned long long* counter, unsigned long long amount) {
    return std::atomic_ref<unsigned long long>(*counter).fetch_add(amount);
}
inline void touch(std::byte* byte) {
    const auto word = reinterpret_cast<std::uintptr_t>(byte) & ~std::uintptr_t{3};
    unsigned zero = 0;
    asm volatile("" : "+r"(zero));
    std::atomic_ref<unsigned>(*reinterpret_cast<unsigned*>(word))
        .fetch_or(zero, std::memory_order_relaxed);
}

#endif

}  // namespace waywiser::gpu
