// Copies of pageable memory in one program without Python: plain copies of the CUDA runtime, a
// prototype in plain CUDA whose threads stay awake, and the library's contexts with `plain` and
// with awake threads. `awake.py` compiles and runs it.
//
//     nvcc -O3 -std=c++20 awake.cu -I INCLUDE -L LIB -l waywiser_transfer -o awake
//     ./awake AWAKE_SECONDS      one JSON object for each size and direction: medians, in us
//
// Each method follows itself, so that its threads stay awake. The prototype is tried with several
// numbers of threads and sizes of its parts. Its fastest shape is then timed again, in the same
// way and as often as the other methods.
#include <cuda_runtime.h>
#include <waywiser/transfer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kKib = 1 << 10;
constexpr std::size_t kMost = std::size_t{8} << 20;
constexpr int kRounds = 60;
constexpr int kTrialRounds = 20;

void check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
    std::exit(1);
}

void check(waywiser_status status) {
    if (status == WAYWISER_OK) return;
    std::fprintf(stderr, "%s\n", waywiser_last_error());
    std::exit(1);
}

// For a thread that looks at something all the time.
void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// The median time of a call, in us.
double median(int rounds, const std::function<void()>& copy) {
    std::vector<double> times;
    copy();
    for (int i = 0; i < rounds; ++i) {
        const auto start = std::chrono::steady_clock::now();
        copy();
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        times.push_back(took.count());
    }
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return times[rounds / 2];
}

struct Sides {
    char* to;
    const char* from;
    std::size_t bytes;
    bool to_gpu;
};

// Threads that spin while they wait for a copy, and copy parts through one pinned slot.
class Prototype {
public:
    Prototype(std::size_t threads, std::size_t part, cudaStream_t stream)
        : part_(part), stream_(stream), events_(kMost / part) {
        check(cudaMallocHost(&slot_, kMost), "allocate pinned memory");
        std::memset(slot_, 0, kMost);
        for (cudaEvent_t& event : events_) {
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event");
        }
        for (std::size_t i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
    }

    ~Prototype() {
        ending_ = true;
        for (std::thread& thread : threads_) thread.join();
        for (cudaEvent_t event : events_) cudaEventDestroy(event);
        cudaFreeHost(slot_);
    }

    Prototype(const Prototype&) = delete;
    Prototype& operator=(const Prototype&) = delete;

    void copy(const Sides& sides) {
        sides_ = sides;
        next_ = submitted_ = 0;
        working_ = threads_.size();
        number_.fetch_add(1);
        const std::size_t parts = (sides.bytes + part_ - 1) / part_;
        if (!sides.to_gpu) {
            for (std::size_t i = 0; i < parts; ++i) {
                submit(i);
                check(cudaEventRecord(events_[i], stream_), "record");
                submitted_ = i + 1;
            }
        }
        work();
        while (working_ != 0) relax();
        if (sides.to_gpu) check(cudaStreamSynchronize(stream_), "wait");
    }

private:
    void serve() {
        for (std::size_t done = 0;;) {
            while (number_ == done) {
                if (ending_) return;
                relax();
            }
            ++done;
            work();
            working_.fetch_sub(1);
        }
    }

    void work() {
        const std::size_t parts = (sides_.bytes + part_ - 1) / part_;
        for (std::size_t i = next_.fetch_add(1); i < parts; i = next_.fetch_add(1)) {
            const std::size_t at = i * part_;
            const std::size_t bytes = std::min(part_, sides_.bytes - at);
            if (sides_.to_gpu) {
                std::memcpy(slot_ + at, sides_.from + at, bytes);
                submit(i);
            } else {
                while (submitted_ <= i) relax();
                while (cudaEventQuery(events_[i]) == cudaErrorNotReady) relax();
                std::memcpy(sides_.to + at, slot_ + at, bytes);
            }
        }
    }

    void submit(std::size_t number) {
        const std::size_t at = number * part_;
        const std::size_t bytes = std::min(part_, sides_.bytes - at);
        char* to = sides_.to_gpu ? sides_.to + at : slot_ + at;
        const char* from = sides_.to_gpu ? slot_ + at : sides_.from + at;
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
    }

    const std::size_t part_;
    cudaStream_t stream_;
    char* slot_ = nullptr;
    std::vector<cudaEvent_t> events_;
    Sides sides_{};
    std::vector<std::thread> threads_;
    alignas(64) std::atomic<std::size_t> number_{0};
    alignas(64) std::atomic<std::size_t> next_{0};
    alignas(64) std::atomic<std::size_t> submitted_{0};
    alignas(64) std::atomic<std::size_t> working_{0};
    std::atomic<bool> ending_{false};
};

struct Shape {
    std::size_t threads, part;
    double us;
};

// The fastest shape, and its time in a second measurement.
Shape prototype(const Sides& sides, cudaStream_t stream) {
    Shape best{0, 0, 1e30};
    for (const std::size_t threads : {2, 4, 6, 8}) {
        for (const std::size_t part : {64 * kKib, 128 * kKib, 256 * kKib, 512 * kKib}) {
            Prototype one(threads, part, stream);
            const double us = median(kTrialRounds, [&] { one.copy(sides); });
            if (us < best.us) best = {threads, part, us};
        }
    }
    Prototype again(best.threads, best.part, stream);
    best.us = median(kRounds, [&] { again.copy(sides); });
    return best;
}

waywiser_context* context(int plain, double spin_seconds) {
    waywiser_options options{};
    options.size = sizeof options;
    options.plain = plain;
    options.spin_seconds = spin_seconds;
    options.policy = "off";
    waywiser_context* made = nullptr;
    check(waywiser_context_create(&options, &made));
    return made;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    char* device = nullptr;
    char* pinned = nullptr;
    check(cudaMalloc(&device, kMost), "allocate");
    check(cudaMallocHost(&pinned, kMost), "allocate pinned memory");
    std::vector<char> pageable(kMost, 1);
    std::memset(pinned, 1, kMost);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    waywiser_context* plain = context(1, 0);
    const double spin_seconds = std::atof(arguments[1]);
    waywiser_context* awake = context(0, spin_seconds);

    for (const std::size_t mib : {1, 2, 4, 8}) {
        for (const bool to_gpu : {true, false}) {
            const auto sides = [&](char* host) {
                return to_gpu ? Sides{device, host, mib << 20, true}
                              : Sides{host, device, mib << 20, false};
            };
            const auto runtime = [&](char* host) {
                const Sides both = sides(host);
                return median(kRounds, [&] {
                    check(
                        cudaMemcpyAsync(both.to, both.from, both.bytes, cudaMemcpyDefault, stream),
                        "copy");
                    check(cudaStreamSynchronize(stream), "wait");
                });
            };
            const auto library = [&](waywiser_context* by) {
                const Sides both = sides(pageable.data());
                return median(kRounds, [&] {
                    waywiser_transfer* left = nullptr;
                    check(waywiser_copy_and_wait(by, both.to, both.from, both.bytes, stream, -1,
                                                 &left));
                    check(cudaStreamSynchronize(stream), "wait");
                });
            };
            const double of_pinned = runtime(pinned);
            const double of_pageable = runtime(pageable.data());
            const double by_plain = library(plain);
            const double by_awake = library(awake);
            // Its threads are not awake beside those of the prototype.
            std::this_thread::sleep_for(std::chrono::duration<double>(2 * spin_seconds));
            const Shape shape = prototype(sides(pageable.data()), stream);
            std::printf(
                "{\"copy\": \"%s %zu MiB\", \"pinned, us\": %.2f, \"runtime, us\": %.2f, "
                "\"plain, us\": %.2f, \"awake, us\": %.2f, \"prototype, us\": %.2f, "
                "\"prototype threads\": %zu, \"prototype KiB\": %zu}\n",
                to_gpu ? "H2D" : "D2H", mib, of_pinned, of_pageable, by_plain, by_awake, shape.us,
                shape.threads, shape.part / kKib);
            std::fflush(stdout);
        }
    }
    waywiser_context_release(plain);
    waywiser_context_release(awake);
    return 0;
}
