#include "simulated_time.hpp"

#include <thread>

namespace waywiser::fake {
namespace {

// A sleep ends later by less than this on an idle machine; a spin of this length is cheap.
constexpr auto kAwake = std::chrono::microseconds(60);

}  // namespace

Instant later(Instant from, double seconds) {
    return from +
           std::chrono::duration_cast<Instant::duration>(std::chrono::duration<double>(seconds));
}

void wait_until(Instant end) {
    if (end - now() > kAwake) std::this_thread::sleep_until(end - kAwake);
    while (now() < end) {
    }
}

}  // namespace waywiser::fake
