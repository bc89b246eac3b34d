// The host's clock: monotonic, in seconds since the process started. Counted from boot, a double
// would lose nanoseconds after some months.
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

// The same clock in seconds since the system started: equal in all processes of a machine. It loses
// nanoseconds after some months.
inline double since_boot() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Seconds of one reading of the clock, measured once.
double clock_overhead();

}  // namespace waywiser::host
