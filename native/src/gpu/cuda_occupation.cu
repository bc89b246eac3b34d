// The occupation: a kernel with a thread for every place on every multiprocessor. Its blocks show
// in page-locked memory that they run, and where, so that no copy and no call is needed to see it.
#include <algorithm>
#include <atomic>
#include <vector>

#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::raw;
using cuda::use;

namespace {

// Two blocks take all threads of a multiprocessor, whose number is no multiple of 1,024 everywhere.
constexpr int kBlocksEach = 2;

// What a block shows, each as the number of the launch.
struct Shown {
    unsigned runs;
    unsigned ends;
    unsigned multiprocessor;  // its number, and no launch
};

__device__ unsigned long long nanoseconds() {
    unsigned long long now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ unsigned multiprocessor() {
    unsigned number = 0;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

__global__ void forget_launches(unsigned* ended) { *ended = 0; }

// The first block alone reads the host's memory; the others read what it writes on the device, so
// that the link stays free.
__global__ void occupy(const volatile unsigned* released, volatile unsigned* ended,
                       volatile Shown* shown, unsigned launch, unsigned long long most) {
    if (threadIdx.x == 0) {
        const unsigned long long start = nanoseconds();
        volatile Shown& own = shown[blockIdx.x];
        own.multiprocessor = multiprocessor();
        __threadfence_system();
        own.runs = launch;
        const volatile unsigned* const word = blockIdx.x == 0 ? released : ended;
        while (*word != launch && nanoseconds() - start < most) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
            __nanosleep(500);
#endif
        }
        own.ends = launch;
        if (blockIdx.x == 0) *ended = launch;
        __threadfence_system();
    }
    __syncthreads();
}

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    WAYWISER_CUDA(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

unsigned load(unsigned& word) {
    return std::atomic_ref<unsigned>(word).load(std::memory_order_acquire);
}

}  // namespace

struct Occupation::State {
    explicit State(int device)
        : multiprocessors(attribute(cudaDevAttrMultiProcessorCount, device)),
          threads(attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device) / kBlocksEach),
          stream(device),
          host(sizeof(unsigned) + blocks() * sizeof(Shown), HostUse::portable, device),
          device_word(device, sizeof(unsigned)) {
        std::fill_n(host.data(), host.bytes(), std::byte{0});
        forget_launches<<<1, 1, 0, raw(stream)>>>(ended());
        WAYWISER_CUDA(cudaGetLastError());
        stream.synchronize();
    }

    [[nodiscard]] std::size_t blocks() const {
        return static_cast<std::size_t>(multiprocessors) * kBlocksEach;
    }
    // The addresses of CPUs.
    [[nodiscard]] unsigned& released() const { return *reinterpret_cast<unsigned*>(host.data()); }
    [[nodiscard]] Shown& shown(std::size_t block) const {
        return reinterpret_cast<Shown*>(host.data() + sizeof(unsigned))[block];
    }
    [[nodiscard]] unsigned* ended() const {
        return reinterpret_cast<unsigned*>(device_word.data());
    }

    int multiprocessors;
    int threads;  // of a block
    Stream stream;
    HostBuffer host;
    DeviceBuffer device_word;
    std::atomic<unsigned> launch{0};
};

Occupation::Occupation(int device) {
    use(device);
    state_ = std::make_unique<State>(device);
}

Occupation::~Occupation() {
    release();
    cuda::forget(cudaStreamSynchronize(raw(state_->stream)));
}

void Occupation::start(double seconds) {
    State& own = *state_;
    use(own.stream.device());
    own.stream.synchronize();
    const unsigned launch = ++own.launch;
    std::byte* const memory = device_address(own.host.data(), own.stream.device());
    occupy<<<static_cast<unsigned>(own.blocks()), static_cast<unsigned>(own.threads), 0,
             raw(own.stream)>>>(reinterpret_cast<const unsigned*>(memory), own.ended(),
                                reinterpret_cast<Shown*>(memory + sizeof(unsigned)), launch,
                                static_cast<unsigned long long>(seconds * 1e9));
    WAYWISER_CUDA(cudaGetLastError());
}

void Occupation::release() noexcept {
    std::atomic_ref<unsigned>(state_->released()).store(state_->launch, std::memory_order_seq_cst);
}

bool Occupation::complete() const {
    const State& own = *state_;
    const unsigned launch = own.launch;
    std::vector<unsigned> used;
    for (std::size_t block = 0; block < own.blocks(); ++block) {
        Shown& shown = own.shown(block);
        if (load(shown.runs) != launch || load(shown.ends) == launch) return false;
        used.push_back(load(shown.multiprocessor));
    }
    std::ranges::sort(used);
    const auto unique = std::ranges::unique(used);
    used.erase(unique.begin(), unique.end());
    return launch != 0 && used.size() == static_cast<std::size_t>(own.multiprocessors);
}

}  // namespace waywiser::gpu
