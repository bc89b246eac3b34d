#include "operation/slope.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace waywiser {
namespace {

// A walker with a known clock: constant seconds, and seconds per step.
struct Walker {
    double at_all = 0;
    double per_step = 0;
    std::size_t steps_taken = 0;
    double walk(std::size_t steps) {
        steps_taken += steps;
        return at_all + per_step * static_cast<double>(steps);
    }
};

TEST(SlopeTest, IsWhatTheStepsCostWhateverTheRestDoes) {
    for (const double at_all : {0.0, 1e-6, 1.0}) {
        for (const double per_step : {1e-9, 25e-6, 0.5}) {
            for (const std::size_t steps : {1u, 16u, 1000u}) {
                Walker walker{at_all, per_step};
                const double measured =
                    slope([&] { return Walks{walker.walk(steps), walker.walk(2 * steps)}; });
                EXPECT_NEAR(measured, per_step * static_cast<double>(steps), 1e-9 + 1e-12 * at_all);
                EXPECT_EQ(walker.steps_taken, 3 * steps) << "walked more often than needed";
            }
        }
    }
}

TEST(SlopeTest, WalksAgainWhereTheShorterWalkWasDelayed) {
    Walker walker{1e-6, 1e-6};
    int walks = 0;
    const double measured = slope([&] {
        const double delay = ++walks < 3 ? 1.0 : 0.0;
        return Walks{walker.walk(10) + delay, walker.walk(20)};
    });
    EXPECT_EQ(walks, 3);
    EXPECT_NEAR(measured, 10e-6, 1e-12);
}

TEST(SlopeTest, RejectsAWalkThatTakesNoTime) {
    EXPECT_THROW(slope([] { return Walks{1e-6, 1e-6}; }), NotSupported);
}

}  // namespace
}  // namespace waywiser
