// The host's clock: monotonic, in seconds since the process started. Counted from the start of the
// machine, as the system does, a double of a machine that has run for months tells no nanoseconds.
#pragma once

#include <chrono>

namespace waywiser::host {

namespace detail {
inline const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
}

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - detail::started)
        .count();
}

// Seconds that one reading of the clock takes, measured once.
double clock_overhead();

}  // namespace waywiser::host
