#include "measure/interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace waywiser::measure {
namespace {

constexpr double kConfidence = 0.95;
constexpr std::size_t kFewestForInterval = 6;  // five samples cover the median with only 93.75 %

// The largest r so that the r-th smallest and r-th largest of n samples enclose the median with the
// given confidence: P(Binomial(n, 1/2) < r) <= (1 - confidence) / 2.
std::size_t rank(std::size_t n) {
    const double tail = (1 - kConfidence) / 2;
    const double log_half_n = -static_cast<double>(n) * std::log(2.0);
    double cumulative = 0;
    double log_choose = 0;
    for (std::size_t r = 0; r < n; ++r) {
        cumulative += std::exp(log_choose + log_half_n);
        if (cumulative > tail) return r;
        log_choose += std::log(static_cast<double>(n - r)) - std::log(static_cast<double>(r + 1));
    }
    return n / 2;
}

double middle(const std::vector<double>& sorted) {
    const std::size_t n = sorted.size();
    return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

}  // namespace

bool Interval::within(double fraction) const { return half_width() <= fraction * median; }

Interval median_interval(std::vector<double> samples) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    if (samples.empty()) return {kNone, kNone, kNone};
    std::ranges::sort(samples);
    Interval interval{middle(samples), kNone, kNone};
    if (samples.size() >= kFewestForInterval) {
        const std::size_t r = rank(samples.size());
        interval.low = samples[r - 1];
        interval.high = samples[samples.size() - r];
    }
    return interval;
}

std::size_t Stopper::minimum() const {
    std::vector<double> sorted = samples_;
    std::ranges::sort(sorted);
    return middle(sorted) > rule_.slow_seconds ? rule_.slow_minimum : rule_.minimum;
}

std::optional<std::string> Stopper::add(double sample, double elapsed) {
    samples_.push_back(sample);
    const std::size_t n = samples_.size();
    const bool spent = elapsed >= rule_.hard_seconds;
    const bool full = n >= rule_.maximum;
    if ((n < std::min(rule_.slow_minimum, rule_.minimum) || elapsed < rule_.minimum_seconds) &&
        !full) {
        return std::nullopt;
    }
    if (n < next_look_ && !spent && !full) return std::nullopt;
    next_look_ = n + std::max<std::size_t>(1, n / 10);
    interval_ = median_interval(samples_);
    if (n >= minimum()) {
        const double enough = elapsed >= rule_.soft_seconds ? rule_.target : rule_.wanted;
        if (interval_.within(enough)) return "converged";
        if (full && interval_.within(rule_.target)) return "converged";
        if (spent) return "budget";
    } else if (spent && n >= kFewestForInterval) {
        return interval_.within(rule_.target) ? "converged" : "budget";
    }
    if (full) return "limit";
    return std::nullopt;
}

}  // namespace waywiser::measure
