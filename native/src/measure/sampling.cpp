#include "measure/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "host/clock.hpp"
#include "measure/interval.hpp"

namespace waywiser::measure {
namespace {

constexpr double kResolution = 20;  // an interval is at least this many times the timer's overhead
constexpr double kShortestInterval = 50e-6;  // seconds; keeps the number of samples small
// Seconds; no longer interval is asked for, whatever the overhead: ranks that share CPUs leave a
// barrier milliseconds apart, and take as long for each message. Their samples are flagged.
constexpr double kLongestInterval = 2e-3;
constexpr double kGrowth = 1.25;  // margin when the number of repetitions is raised
constexpr double kProgressSeconds = 0.1;
constexpr int kLooks = 3;            // intervals to measure before accepting one as long enough
constexpr double kLongBeyond = 400;  // an interval this many times too long is accepted at once

Sample take_sample(const Sampling& sampling) {
    Sample sample;
    if (sampling.once_apart) {
        sampling.condition(1);
        sample.host = sampling.timer.once();
    }
    sampling.condition(sampling.repetitions);
    Timing timing = sampling.timer.take(sampling.repetitions);
    sample.span = timing.span;
    sample.skew = timing.skew;
    sample.transfers = std::move(timing.transfers);
    sample.lanes = std::move(timing.lanes);
    sample.alone = std::move(timing.alone);
    sample.repetitions = static_cast<std::uint32_t>(sampling.repetitions);
    if (!sampling.once_apart) sample.host = sample.span;
    const double interval = sample.span * static_cast<double>(sampling.repetitions);
    if (interval < kResolution * sampling.timer.overhead()) sample.flags |= flag_below_resolution;
    return sample;
}

}  // namespace

std::size_t repetitions_for(Timer& timer, std::size_t most,
                            const std::function<void(std::size_t)>& condition) {
    const double shortest =
        std::clamp(kResolution * timer.overhead(), kShortestInterval, kLongestInterval);
    std::size_t repetitions = std::min(most, timer.least_repetitions());
    for (;;) {
        double interval = kLongBeyond * shortest;
        for (int look = 0; look < kLooks && interval >= shortest; ++look) {
            condition(repetitions);
            const double one = timer.take(repetitions).span * static_cast<double>(repetitions);
            if (one >= kLongBeyond * shortest) return repetitions;
            interval = std::min(interval, one);
        }
        if (interval >= shortest || repetitions >= most) return repetitions;
        const double factor = std::clamp(kGrowth * shortest / std::max(interval, 1e-9), 2.0, 64.0);
        repetitions = std::min(
            most, static_cast<std::size_t>(std::ceil(static_cast<double>(repetitions) * factor)));
    }
}

void take_samples(const Sampling& sampling, Outcome& outcome) {
    Stopper stopper(sampling.rule);
    const double start = host::now();
    double reported =
        start - 2 * kProgressSeconds;  // the first sample reports that sampling has begun
    for (std::optional<std::string> why; !why;) {
        outcome.samples.push_back(take_sample(sampling));
        const double now = host::now();
        why = stopper.add(outcome.samples.back().span, now - start);
        if (why) outcome.stop = *why;
        if (sampling.progress && now - reported > kProgressSeconds) {
            reported = now;
            const Interval& interval = stopper.interval();
            sampling.progress({stopper.count(), interval.median, interval.low, interval.high});
        }
    }
    outcome.sampling_seconds = host::now() - start;
}

}  // namespace waywiser::measure
