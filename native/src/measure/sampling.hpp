// Takes the samples of a series: how long one has to be, and then one after the other.
#pragma once

#include <cstddef>
#include <functional>

#include "measure/timer.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// How often an execution is repeated within a sample so that the timer's overhead is at most 5 %
// of the interval (methodology 3). The shortest of several counts: one that something delayed
// would leave all samples of the series too short.
std::size_t repetitions_for(Timer& timer, std::size_t most,
                            const std::function<void(std::size_t)>& condition);

struct Sampling {
    Timer& timer;
    const StopRule& rule;
    std::size_t repetitions;
    bool once_apart;  // the application's view is a second execution, not the sample itself
    std::function<void(std::size_t)> condition;  // for so many executions
    const std::function<void(const Progress&)>& progress;
};

// Adds samples to the outcome until the rule says why to stop; the outcome says so, and how long
// that took.
void take_samples(const Sampling& sampling, Outcome& outcome);

}  // namespace waywiser::measure
