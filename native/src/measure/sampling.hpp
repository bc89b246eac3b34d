// Takes the samples of a series: finds their length, then takes one after another.
#pragma once

#include <cstddef>
#include <functional>

#include "measure/timer.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// The number of repetitions in a sample so that the timer's overhead is at most 5 % of the interval
// (methodology 3). The shortest of several intervals counts, since a delayed one would make all
// samples of the series too short.
std::size_t repetitions_for(Timer& timer, std::size_t most,
                            const std::function<void(std::size_t)>& condition);

struct Sampling {
    Timer& timer;
    const StopRule& rule;
    std::size_t repetitions;
    bool once_apart;  // once() is an execution of its own, not the sample
    std::function<void(std::size_t)> condition;  // prepares a number of executions
    const std::function<void(const Progress&)>& progress;
};

// Adds samples to the outcome until the rule says to stop, and sets the outcome's reason and
// duration.
void take_samples(const Sampling& sampling, Outcome& outcome);

}  // namespace waywiser::measure
