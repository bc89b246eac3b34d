#include "measure/interval.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace waywiser::measure {
namespace {

std::vector<double> counting(std::size_t n) {
    std::vector<double> samples(n);
    std::iota(samples.begin(), samples.end(), 1.0);
    std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
    return samples;
}

// Ranks from tables of the binomial distribution: the narrowest interval that still covers 95 %.
TEST(MedianInterval, HasTheRanksOfTheTables) {
    struct Row {
        std::size_t n;
        double low, high;
    };
    for (const auto& [n, low, high] :
         {Row{6, 1, 6}, Row{8, 1, 8}, Row{9, 2, 8}, Row{10, 2, 9}, Row{11, 2, 10}, Row{12, 3, 10},
          Row{15, 4, 12}, Row{20, 6, 15}, Row{25, 8, 18}, Row{30, 10, 21}, Row{50, 18, 33},
          Row{100, 40, 61}}) {
        const Interval interval = median_interval(counting(n));
        EXPECT_EQ(interval.low, low) << "of " << n;
        EXPECT_EQ(interval.high, high) << "of " << n;
        EXPECT_EQ(interval.median, static_cast<double>(n + 1) / 2) << "of " << n;
    }
}

TEST(MedianInterval, OfFewerThanSixDoesNotExist) {
    for (const std::size_t n : {1u, 2u, 5u}) {
        const Interval interval = median_interval(counting(n));
        EXPECT_EQ(interval.median, static_cast<double>(n + 1) / 2);
        EXPECT_TRUE(std::isnan(interval.low) && std::isnan(interval.high));
        EXPECT_FALSE(interval.within(1000));
    }
    EXPECT_TRUE(std::isnan(median_interval({}).median));
}

TEST(MedianInterval, StaysExactForThousandsOfSamples) {
    const Interval interval = median_interval(counting(5000));
    // Half of 1.96 times the square root of n on either side, from the normal limit.
    EXPECT_NEAR(interval.half_width(), 1.96 * std::sqrt(5000.0) / 2, 2);
    EXPECT_NEAR((interval.low + interval.high) / 2, 2500.5, 0.6);
}

TEST(MedianInterval, CoversTheMedianAsOftenAsItSays) {
    std::mt19937_64 random(42);
    std::exponential_distribution<double> skewed(1.0);
    constexpr int kRounds = 2000;
    int covered = 0;
    for (int round = 0; round < kRounds; ++round) {
        std::vector<double> samples(21);
        for (double& sample : samples) sample = skewed(random);
        const Interval interval = median_interval(samples);
        covered += interval.low <= std::log(2.0) && std::log(2.0) <= interval.high;
    }
    EXPECT_GT(covered, 0.94 * kRounds);
}

// Feeds samples `seconds` apart until the stopper has enough.
struct Fed {
    std::string stop;
    std::size_t samples = 0;
};

template <class Next>
Fed feed(const StopRule& rule, double seconds, Next next) {
    Stopper stopper(rule);
    for (std::size_t n = 1; n <= rule.maximum; ++n) {
        if (const auto why = stopper.add(next(n), seconds * static_cast<double>(n))) {
            EXPECT_EQ(stopper.count(), n);
            return {*why, n};
        }
    }
    ADD_FAILURE() << "it never stopped";
    return {};
}

// Alternately a fraction above and below one: the interval stays as wide as that.
auto swinging(double fraction) {
    return [fraction](std::size_t n) { return n % 2 == 0 ? 1 + fraction : 1 - fraction; };
}

// By default no sample counts as slow, and there is no minimum time.
constexpr StopRule kRule{.slow_seconds = 1000, .minimum_seconds = 0};

double steady(std::size_t) { return 1.0; }

TEST(Stopper, TakesTheMinimumOfSteadySamples) {
    const Fed fed = feed(kRule, 1e-6, steady);
    EXPECT_EQ(fed.stop, "converged");
    EXPECT_EQ(fed.samples, StopRule{}.minimum);
}

TEST(Stopper, SamplesForAtLeastTheMinimumTime) {
    const Fed fed = feed({.slow_seconds = 1000, .minimum_seconds = 0.01}, 1e-4, steady);
    EXPECT_EQ(fed.stop, "converged");
    EXPECT_NEAR(static_cast<double>(fed.samples), 100, 2);
}

TEST(Stopper, TakesFewerWhereOneIsSlow) {
    const Fed fed = feed({.minimum_seconds = 0}, 1e-6, steady);
    EXPECT_EQ(fed.stop, "converged");
    EXPECT_EQ(fed.samples, StopRule{}.slow_minimum);
}

TEST(Stopper, TriesForOnePercentAndIsContentWithTwo) {
    const StopRule rule = kRule;
    const Fed good = feed(rule, 1e-4, swinging(0.009));
    EXPECT_EQ(good.stop, "converged");
    EXPECT_LE(good.samples, 12u);
    const Fed fair = feed(rule, 1e-4, swinging(0.015));
    EXPECT_EQ(fair.stop, "converged");
    const double spent = 1e-4 * static_cast<double>(fair.samples);
    EXPECT_GE(spent, rule.soft_seconds);
    EXPECT_LT(spent, rule.soft_seconds * 1.2);
}

TEST(Stopper, GivesUpWhenTheBudgetIsSpent) {
    const StopRule rule = kRule;
    const Fed fed = feed(rule, 1e-3, swinging(0.05));
    EXPECT_EQ(fed.stop, "budget");
    EXPECT_NEAR(1e-3 * static_cast<double>(fed.samples), rule.hard_seconds, 2e-3);
}

TEST(Stopper, GivesUpAtTheMostSamples) {
    StopRule rule = kRule;
    rule.maximum = 300;
    const Fed fed = feed(rule, 1e-9, swinging(0.05));
    EXPECT_EQ(fed.stop, "limit");
    EXPECT_EQ(fed.samples, 300u);
}

TEST(Stopper, NeverStopsWithoutAnInterval) {
    const Fed fed = feed({}, 100, swinging(0.05));  // one sample spends the budget
    EXPECT_EQ(fed.stop, "budget");
    EXPECT_GE(fed.samples, 6u);
}

TEST(Stopper, OutliersDoNotKeepItBusy) {
    const Fed fed = feed(kRule, 1e-6, [](std::size_t n) { return n % 10 == 3 ? 50.0 : 1.0; });
    EXPECT_EQ(fed.stop, "converged");
    EXPECT_LT(fed.samples, 30u);
}

}  // namespace
}  // namespace waywiser::measure
