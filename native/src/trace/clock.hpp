// The clock of all times that are kept.
#pragma once

#include <cstdint>
#include <ctime>

namespace waywiser::trace {

// Nanoseconds of CLOCK_MONOTONIC.
inline std::uint64_t monotonic_now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

// Nanoseconds that the calling thread has run on a CPU.
inline std::uint64_t thread_cpu_now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace waywiser::trace
