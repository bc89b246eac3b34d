#include "host/clock.hpp"

#include <gtest/gtest.h>

#include <ctime>
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

// Two processes can compare it: its origin is that of the system's clock, and not their start.
TEST(Clock, CountsAlikeInAllProcesses) {
    const auto system = [] {
        std::timespec read{};
        clock_gettime(CLOCK_MONOTONIC, &read);
        return static_cast<double>(read.tv_sec) + static_cast<double>(read.tv_nsec) * 1e-9;
    };
    constexpr double kRounding = 1e-7;
    const double before = system();
    const double read = since_boot();
    const double after = system();
    EXPECT_GE(read, before - kRounding);
    EXPECT_LE(read, after + kRounding);
}

}  // namespace
}  // namespace waywiser::host
