// A program in C++ that the tests trace. Arguments: what it does, in order.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fake_tools.hpp"

namespace fake::program {

namespace {

constexpr std::uint64_t kBytes = 1 << 16;
constexpr std::int32_t kToDevice = 1;

std::vector<char> host(kBytes);
void* device = nullptr;

}  // namespace

// Exported, so that the tracer finds their names, and neither inlined nor made for single callers.
#if defined(__clang__)
#define EXPORTED [[gnu::noinline, gnu::visibility("default")]]
#else
#define EXPORTED [[gnu::noipa, gnu::visibility("default")]]
#endif
extern "C" {

EXPORTED void copy_here(std::uint64_t bytes) {
    cudaMemcpy(device, host.data(), bytes, kToDevice);
    asm volatile("");
}

EXPORTED void copy_there() {
    cudaMemcpyAsync(device, host.data(), kBytes, kToDevice, nullptr);
    cudaStreamSynchronize(nullptr);
    asm volatile("");
}
}

namespace {

// Median and 95th percentile of a call, in nanoseconds.
void measure(int copies) {
    std::vector<double> times;
    for (int i = 0; i < copies; ++i) {
        const auto start = std::chrono::steady_clock::now();
        copy_here(64);
        times.push_back(
            std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
                .count());
    }
    std::sort(times.begin(), times.end());
    std::printf("%.0f %.0f\n", times[times.size() / 2], times[times.size() * 95 / 100]);
}

void copy_by_threads(int threads, int copies) {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([copies] {
            for (int copy = 0; copy < copies; ++copy) copy_here(kBytes);
        });
    }
    for (std::thread& thread : all) thread.join();
}

bool act(const std::string& word) {
    if (word == "copy") {
        copy_here(kBytes);
    } else if (word == "wait") {
        copy_there();
    } else if (word == "threads") {
        copy_by_threads(8, 1000);
    } else if (word == "fork") {
        if (fork() == 0) {
            copy_here(128);
            return true;  // the child goes on
        }
        int status = 0;
        wait(&status);
        std::exit(status);
    } else if (word == "second") {
        std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    } else if (word == "measure") {
        measure(20'000);
    } else if (word == "die") {
        std::raise(SIGKILL);
    } else {
        return false;
    }
    return true;
}

}  // namespace

}  // namespace fake::program

int main(int argc, char** argv) {
    if (cuInit(0) != 0) return 3;
    fake::program::device = fake_device_memory(fake::program::kBytes, 0);
    for (int i = 1; i < argc; ++i) {
        if (!fake::program::act(argv[i])) return 2;
    }
    return 0;
}
