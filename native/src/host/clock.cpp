#include "clock.hpp"

#include <algorithm>
#include <array>

namespace waywiser::host {

double clock_overhead() {
    static const double overhead = [] {
        constexpr int kReadings = 1000;
        std::array<double, 5> rounds{};
        for (double& round : rounds) {
            const double start = now();
            double last = start;
            for (int i = 0; i < kReadings; ++i) last = now();
            round = (last - start) / kReadings;
        }
        return *std::ranges::min_element(rounds);
    }();
    return overhead;
}

}  // namespace waywiser::host
