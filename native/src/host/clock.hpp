// The host's clock: monotonic, in seconds.
#pragma once

#include <chrono>

namespace waywiser::host {

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Seconds that one reading of the clock takes, measured once.
double clock_overhead();

}  // namespace waywiser::host
