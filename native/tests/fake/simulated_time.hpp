// Waits for simulated durations precisely: sleeps for most of them and spins at the end.
#pragma once

#include <chrono>

namespace waywiser::fake {

using Instant = std::chrono::steady_clock::time_point;

inline Instant now() { return std::chrono::steady_clock::now(); }
Instant later(Instant from, double seconds);
void wait_until(Instant end);

}  // namespace waywiser::fake
