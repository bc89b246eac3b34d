// The clock of all times that are kept.
#pragma once

#include <cstdint>
#include <ctime>

namespace waywiser::trace {

inline std::uint64_t nanoseconds_of(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

inline std::uint64_t monotonic_now() { return nanoseconds_of(CLOCK_MONOTONIC); }

// How long the calling thread has run on a CPU.
inline std::uint64_t thread_cpu_now() { return nanoseconds_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace waywiser::trace
