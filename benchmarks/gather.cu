// The prototype that lists with a contiguous host side are compared with (benchmarks/gather.py): a
// kernel gathers or scatters blocks in device memory, chunk by chunk, and the copy engine moves the
// chunks. It prints, for each block size, the times of both directions and of contiguous copies, in
// seconds, and the part of the time for which its kernels run.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr size_t kTotal = size_t{256} << 20;
constexpr size_t kChunk = size_t{4} << 20;
constexpr int kSlots = 3;
constexpr int kBlocks = 8;
constexpr int kThreads = 1024;
constexpr int kRounds = 15;

void check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
    std::exit(1);
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// `words`: 16-byte words of a block.
__global__ void move(uint4* to, const uint4* from, const int* index, int first, int blocks,
                     int words, bool gathers) {
    const long all = static_cast<long>(blocks) * words;
    const long apart = static_cast<long>(gridDim.x) * blockDim.x;
    for (long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x; i < all; i += apart) {
        const long far = static_cast<long>(index[first + i / words]) * words + i % words;
        if (gathers) {
            to[i] = from[far];
        } else {
            to[far] = from[i];
        }
    }
}

double median(const std::function<void()>& run) {
    std::vector<double> times;
    for (int i = 0; i < kRounds; ++i) {
        check(cudaDeviceSynchronize(), "synchronise");
        const double start = now();
        run();
        times.push_back(now() - start);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

}  // namespace

int main() {
    char* pool = nullptr;
    char* host = nullptr;
    char* stage = nullptr;
    int* index = nullptr;
    check(cudaMalloc(&pool, 2 * kTotal), "allocate");
    check(cudaMallocHost(&host, kTotal), "allocate");
    check(cudaMalloc(&stage, kChunk * kSlots), "allocate");
    check(cudaMalloc(&index, kTotal / 1024 * sizeof(int)), "allocate");
    check(cudaMemset(pool, 1, 2 * kTotal), "fill");
    cudaStream_t kernels = nullptr;
    cudaStream_t copies = nullptr;
    check(cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking), "stream");
    check(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), "stream");
    cudaEvent_t full[kSlots];
    cudaEvent_t empty[kSlots];
    for (int i = 0; i < kSlots; ++i) {
        check(cudaEventCreateWithFlags(&full[i], cudaEventDisableTiming), "event");
        check(cudaEventCreateWithFlags(&empty[i], cudaEventDisableTiming), "event");
    }
    const auto contiguous = [&](bool out) {
        return median([&] {
            check(cudaMemcpyAsync(out ? host : pool, out ? pool : host, kTotal,
                                  out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, copies),
                  "copy");
            check(cudaStreamSynchronize(copies), "synchronise");
        });
    };
    const double d2h = contiguous(true);
    const double h2d = contiguous(false);
    const auto run = [&](size_t block, bool out) {
        const int per = static_cast<int>(kChunk / block);
        const int words = static_cast<int>(block / 16);
        for (size_t at = 0, n = 0; at < kTotal; at += kChunk, ++n) {
            const size_t slot = n % kSlots;
            char* const staged = stage + slot * kChunk;
            const int first = static_cast<int>(at / block);
            cudaStream_t const one = out ? kernels : copies;
            cudaStream_t const two = out ? copies : kernels;
            if (n >= kSlots) check(cudaStreamWaitEvent(one, empty[slot], 0), "wait");
            const auto by_kernel = [&] {
                move<<<kBlocks, kThreads, 0, kernels>>>(
                    reinterpret_cast<uint4*>(out ? staged : pool),
                    reinterpret_cast<const uint4*>(out ? pool : staged), index, first, per, words,
                    out);
            };
            if (out) {
                by_kernel();
            } else {
                check(cudaMemcpyAsync(staged, host + at, kChunk, cudaMemcpyHostToDevice, copies),
                      "copy");
            }
            check(cudaEventRecord(full[slot], one), "record");
            check(cudaStreamWaitEvent(two, full[slot], 0), "wait");
            if (out) {
                check(cudaMemcpyAsync(host + at, staged, kChunk, cudaMemcpyDeviceToHost, copies),
                      "copy");
            } else {
                by_kernel();
            }
            check(cudaEventRecord(empty[slot], two), "record");
        }
        check(cudaStreamSynchronize(copies), "synchronise");
        check(cudaStreamSynchronize(kernels), "synchronise");
    };
    std::mt19937 random(1);
    for (const size_t block : {1024, 4096, 16384, 65536, 131072}) {
        std::vector<int> order(2 * kTotal / block);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        check(cudaMemcpy(index, order.data(), kTotal / block * sizeof(int), cudaMemcpyDefault),
              "copy");
        const double out = median([&] { run(block, true); });
        const double in = median([&] { run(block, false); });
        cudaEvent_t start = nullptr;
        cudaEvent_t stop = nullptr;
        check(cudaEventCreate(&start), "event");
        check(cudaEventCreate(&stop), "event");
        check(cudaEventRecord(start, kernels), "record");
        move<<<kBlocks, kThreads, 0, kernels>>>(
            reinterpret_cast<uint4*>(stage), reinterpret_cast<const uint4*>(pool), index, 0,
            static_cast<int>(kChunk / block), static_cast<int>(block / 16), true);
        check(cudaEventRecord(stop, kernels), "record");
        check(cudaStreamSynchronize(kernels), "synchronise");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start, stop), "time");
        const double busy =
            static_cast<double>(milliseconds) * 1e-3 * static_cast<double>(kTotal / kChunk);
        std::printf(
            "{\"block\": %zu, \"D2H\": %.9f, \"H2D\": %.9f, \"contiguous D2H\": %.9f, "
            "\"contiguous H2D\": %.9f, \"multiprocessors\": %.4f}\n",
            block, out, in, d2h, h2d, kBlocks * busy / out);
    }
    return 0;
}
