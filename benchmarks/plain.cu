// What a program without any tool would measure: zero-copy, managed memory, page faults and the
// latency of host memory, in plain CUDA on one GPU. `plain.py` compiles it and compares.
//
//     nvcc -O3 -std=c++17 -arch=native plain.cu -o plain
//     ./plain BYTES FAULT_STRIDE CHASE_BYTES      one JSON object: seconds of each, medians
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define CHECK(call)                                                              \
    do {                                                                         \
        const cudaError_t status = (call);                                       \
        if (status != cudaSuccess) {                                             \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (false)

namespace {

constexpr int kWarmUps = 2;
constexpr int kSamples = 11;
constexpr std::size_t kPage = 4096;

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}

void print(const char* name, const char* suffix, double seconds) {
    static const char* separator = "";
    std::printf("%s\"%s%s\": %.9g", separator, name, suffix, seconds);
    separator = ", ";
}

cudaStream_t stream;

// Seconds between two events around `work`, each time after `before` and a synchronisation.
double by_events(const std::function<void()>& before, const std::function<void()>& work) {
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    std::vector<double> seconds;
    for (int i = 0; i < kWarmUps + kSamples; ++i) {
        before();
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaEventRecord(start, stream));
        work();
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        if (i >= kWarmUps) seconds.push_back(milliseconds * 1e-3);
    }
    return median(seconds);
}

double by_clock(const std::function<void()>& before, const std::function<void()>& work) {
    std::vector<double> seconds;
    for (int i = 0; i < kWarmUps + kSamples; ++i) {
        before();
        CHECK(cudaStreamSynchronize(stream));
        const auto start = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (i >= kWarmUps) seconds.push_back(took.count());
    }
    return median(seconds);
}

template <class Word>
__global__ void copy(Word* __restrict__ to, const Word* __restrict__ from, std::size_t count) {
    const std::size_t all = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += all) {
        to[i] = from[i];
    }
}

// A warp to each page, whose first byte it writes.
__global__ void touch(unsigned char* data, std::size_t pages) {
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::size_t warps = static_cast<std::size_t>(gridDim.x) * blockDim.x / 32;
    for (std::size_t page = thread / 32; page < pages; page += warps) {
        if (thread % 32 == 0) data[page * kPage] = 1;
    }
}

__global__ void follow(void** from, std::size_t steps, void** end) {
    void** at = from;
    for (std::size_t i = 0; i < steps; ++i) at = static_cast<void**>(*at);
    *end = at;
}

// From where the last walk stopped, so that no cell and no translation is known from before.
__global__ void go_on(void** end, std::size_t steps) {
    void** at = static_cast<void**>(*end);
    for (std::size_t i = 0; i < steps; ++i) at = static_cast<void**>(*at);
    *end = at;
}

void prefetch(void* data, std::size_t bytes, int device) {
#if CUDART_VERSION >= 13000
    const cudaMemLocation to = device < 0 ? cudaMemLocation{cudaMemLocationTypeHost, 0}
                                          : cudaMemLocation{cudaMemLocationTypeDevice, device};
    CHECK(cudaMemPrefetchAsync(data, bytes, to, 0, stream));
#else
    CHECK(cudaMemPrefetchAsync(data, bytes, device < 0 ? cudaCpuDeviceId : device, stream));
#endif
}

// Page-locked memory of the host: what the runtime allocates, or ordinary or huge pages that were
// touched and then registered.
class Locked {
public:
    enum class From { runtime, pages, huge_pages };
    Locked(std::size_t bytes, From from) : bytes_((bytes + kHuge - 1) / kHuge * kHuge) {
        if (from == From::runtime) {
            CHECK(cudaHostAlloc(&data_, bytes_, cudaHostAllocMapped));
            return;
        }
        data_ = std::aligned_alloc(kHuge, bytes_);
        const int pages = from == From::huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
        if (data_ == nullptr || madvise(data_, bytes_, pages) != 0) {
            std::perror("host memory");
            std::exit(1);
        }
        std::memset(data_, 1, bytes_);
        CHECK(cudaHostRegister(data_, bytes_, cudaHostRegisterMapped));
        registered_ = true;
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() {
        if (registered_) {
            CHECK(cudaHostUnregister(data_));
            std::free(data_);
        } else {
            CHECK(cudaFreeHost(data_));
        }
    }
    [[nodiscard]] unsigned char* data() const { return static_cast<unsigned char*>(data_); }

private:
    static constexpr std::size_t kHuge = std::size_t{2} << 20;
    std::size_t bytes_;
    void* data_ = nullptr;
    bool registered_ = false;
};

struct Kind {
    Locked::From from;
    const char* suffix;
};
constexpr Kind kKinds[] = {{Locked::From::pages, ""},
                           {Locked::From::huge_pages, "-huge"},
                           {Locked::From::runtime, "-allocated"}};

void zero_copy(std::size_t bytes, const Kind& kind) {
    const Locked memory(bytes, kind.from);
    void* const host = memory.data();
    void* device;
    CHECK(cudaMalloc(&device, bytes));
    cudaDeviceProp properties{};
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const int blocks = properties.multiProcessorCount * 8;
    const auto tuned = [&](void* to, const void* from) {
        return by_events([] {},
                         [=] {
                             copy<<<blocks, 256, 0, stream>>>(static_cast<uint4*>(to),
                                                              static_cast<const uint4*>(from),
                                                              bytes / 16);
                         });
    };
    const auto paper = [&](void* to, const void* from) {
        return by_events([] {},
                         [=] {
                             copy<<<256, 256, 0, stream>>>(static_cast<unsigned*>(to),
                                                           static_cast<const unsigned*>(from),
                                                           bytes / 4);
                         });
    };
    print("read", kind.suffix, tuned(device, host));
    print("write", kind.suffix, tuned(host, device));
    print("read-paper", kind.suffix, paper(device, host));
    print("write-paper", kind.suffix, paper(host, device));
    CHECK(cudaGetLastError());
    CHECK(cudaFree(device));
}

void managed(std::size_t bytes) {
    unsigned char* data;
    CHECK(cudaMallocManaged(&data, bytes));
    const auto to_host = [=] { prefetch(data, bytes, -1); };
    const auto to_gpu = [=] { prefetch(data, bytes, 0); };
    print("prefetch-h2d", "", by_events(to_host, to_gpu));
    print("prefetch-d2h", "", by_events(to_gpu, to_host));
    print("demand-h2d", "",
          by_events(to_host, [=] { touch<<<256, 256, 0, stream>>>(data, bytes / kPage); }));
    print("demand-d2h", "", by_clock(to_gpu, [=] {
              volatile unsigned char* bytes_of = data;
              for (std::size_t at = 0; at < bytes; at += kPage) bytes_of[at] = 1;
          }));
    CHECK(cudaFree(data));
}

// Seconds per fault: what n more steps of a list in host-resident managed memory cost.
void faults(std::size_t stride) {
    constexpr std::size_t kSteps = 32;
    unsigned char* data;
    CHECK(cudaMallocManaged(&data, 2 * kSteps * stride + kPage));
    void** end;
    CHECK(cudaMalloc(&end, sizeof(void*)));
    const auto fresh = [=] {
        prefetch(data, 2 * kSteps * stride + kPage, -1);
        CHECK(cudaStreamSynchronize(stream));
        for (std::size_t i = 0; i < 2 * kSteps; ++i) {
            *reinterpret_cast<void**>(data + i * stride) = data + (i + 1) * stride;
        }
    };
    const auto chase = [=](std::size_t steps) {
        return by_events(fresh, [=] {
            follow<<<1, 1, 0, stream>>>(reinterpret_cast<void**>(data), steps, end);
        });
    };
    print("fault", "", (chase(2 * kSteps) - chase(kSteps)) / kSteps);
    CHECK(cudaFree(end));
    CHECK(cudaFree(data));
}

// Nothing of it in a CPU's caches, which has just written it: Waywiser's cells are linked by the
// GPU.
void out_of_caches(const unsigned char* data, std::size_t bytes) {
#if defined(__x86_64__)
    constexpr std::size_t kLine = 64;
    for (std::size_t at = 0; at < bytes; at += kLine) _mm_clflush(data + at);
    _mm_mfence();
#else
    std::vector<unsigned char> other(std::size_t{1} << 30);
    std::fill(other.begin(), other.end(), data[bytes - 1]);
#endif
}

// Seconds per dependent load of one thread from page-locked host memory, in a random cycle.
void host_latency(std::size_t bytes, const Kind& kind) {
    constexpr std::size_t kNode = 128;
    constexpr std::size_t kSteps = 20000;
    const Locked memory(bytes, kind.from);
    unsigned char* const host = memory.data();
    void** end;
    CHECK(cudaMalloc(&end, sizeof(void*)));
    std::vector<std::size_t> order(bytes / kNode);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    for (std::size_t i = 0; i < order.size(); ++i) {
        *reinterpret_cast<void**>(host + order[i] * kNode) =
            host + order[(i + 1) % order.size()] * kNode;
    }
    CHECK(cudaMemcpy(end, &host, sizeof(host), cudaMemcpyHostToDevice));
    const auto chase = [=](std::size_t steps) {
        return by_events([] {}, [=] { go_on<<<1, 1, 0, stream>>>(end, steps); });
    };
    out_of_caches(host, bytes);
    print("host-load", kind.suffix, (chase(2 * kSteps) - chase(kSteps)) / kSteps);
    CHECK(cudaFree(end));
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: plain BYTES FAULT_STRIDE CHASE_BYTES\n");
        return 2;
    }
    const auto number = [&](int i) { return std::strtoull(arguments[i], nullptr, 10); };
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::printf("{");
    for (const Kind& kind : kKinds) zero_copy(number(1), kind);
    managed(number(1));
    faults(number(2));
    for (const Kind& kind : kKinds) host_latency(number(3), kind);
    std::printf("}\n");
    return 0;
}
