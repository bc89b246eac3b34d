#include "host/clock.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace waywiser::host {
namespace {

TEST(Clock, CountsSecondsForward) {
    const double start = now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double seconds = now() - start;
    EXPECT_GE(seconds, 0.020);
    EXPECT_LT(seconds, 10);
}

TEST(Clock, KnowsWhatReadingItCosts) {
    EXPECT_GT(clock_overhead(), 0);
    EXPECT_LT(clock_overhead(), 1e-5);
}

// A double has 53 bits: counted from boot, it has a resolution of 4 ns after a year.
TEST(Clock, CountsFromTheStartOfTheProcess) {
    EXPECT_GT(now(), 0);
    EXPECT_LT(now(), 3600);
}

}  // namespace
}  // namespace waywiser::host
