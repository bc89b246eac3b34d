// How long simulated work lasts, steadily: asleep for most of it, awake for the end.
#pragma once

#include <chrono>

namespace waywiser::fake {

using Instant = std::chrono::steady_clock::time_point;

inline Instant now() { return std::chrono::steady_clock::now(); }
Instant later(Instant from, double seconds);
void last_until(Instant end);

}  // namespace waywiser::fake
