// The median of samples and its 95 % interval, and the rule when to stop sampling.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "waywiser/session.hpp"

namespace waywiser::measure {

struct Interval {
    double median = 0;
    double low = 0;  // NaN if there are too few samples for an interval
    double high = 0;
    [[nodiscard]] double half_width() const { return (high - low) / 2; }
    [[nodiscard]] bool within(double fraction) const;
};

// Exact, from order statistics of the binomial distribution, without assuming normality; needs n >=
// 6 (Hahn & Meeker, Statistical Intervals; Hoefler & Belli, SC'15).
Interval median_interval(std::vector<double> samples);

// Decides after each sample whether the series has enough.
class Stopper {
public:
    explicit Stopper(const StopRule& rule) : rule_(rule) {}
    // `elapsed`: seconds of sampling so far. Returns the reason to stop, or nullopt.
    std::optional<std::string> add(double sample, double elapsed);
    [[nodiscard]] const Interval& interval() const { return interval_; }
    [[nodiscard]] std::size_t count() const { return samples_.size(); }

private:
    [[nodiscard]] std::size_t minimum() const;

    StopRule rule_;
    std::vector<double> samples_;
    Interval interval_;
    std::size_t next_look_ = 0;
};

}  // namespace waywiser::measure
