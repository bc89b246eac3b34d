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

// Seconds of one reading of the clock, measured once.
double clock_overhead();

}  // namespace waywiser::host
