#include "measure/common_release.hpp"

#include <algorithm>

#include "host/clock.hpp"
#include "measure/interval.hpp"

namespace waywiser::measure {
namespace {

constexpr int kEmptyReleases = 25;

std::vector<std::vector<int>> cpus_of(const std::vector<Part>& parts) {
    std::vector<std::vector<int>> cpus;
    for (const Part& part : parts) cpus.push_back(part.cpu);
    return cpus;
}

}  // namespace

CommonRelease::CommonRelease(const std::vector<Part>& parts)
    : started_(parts.size()), finished_(parts.size()), team_(cpus_of(parts)) {}

double CommonRelease::run(const std::function<void(std::size_t)>& job) {
    const std::function<void(std::size_t)> timed = [&](std::size_t i) {
        started_[i] = host::now();
        job(i);
        finished_[i] = host::now();
    };
    team_.arm(timed);
    const double released = host::now();
    team_.release();
    team_.wait();
    return released;
}

double CommonRelease::skew() const {
    return std::ranges::max(started_) - std::ranges::min(started_);
}

double CommonRelease::overhead() {
    if (overhead_ < 0) {
        std::vector<double> samples(kEmptyReleases);
        for (double& sample : samples) {
            const double released = run([](std::size_t) {});
            sample = std::ranges::max(finished_) - released;
        }
        overhead_ = median_interval(std::move(samples)).median;
    }
    return overhead_;
}

}  // namespace waywiser::measure
