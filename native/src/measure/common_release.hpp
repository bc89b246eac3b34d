// One thread for each part of a workload, all released by one flag.
#pragma once

#include <functional>
#include <vector>

#include "host/team.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {

class CommonRelease {
public:
    explicit CommonRelease(const std::vector<Part>& parts);

    // Runs the job of every part on its own thread; returns when the flag was raised.
    double run(const std::function<void(std::size_t)>& job);
    // By the host's clock, of the last run: when each job ended.
    [[nodiscard]] const std::vector<double>& finished() const { return finished_; }
    // Seconds between the first start and the last.
    [[nodiscard]] double skew() const;
    // Seconds from the release to the end of the last of jobs that do nothing.
    [[nodiscard]] double overhead();

private:
    std::vector<double> started_;
    std::vector<double> finished_;
    host::Team team_;
    double overhead_ = -1;
};

}  // namespace waywiser::measure
