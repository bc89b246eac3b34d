// Host timing: one thread per transfer, all released by one flag. A transfer's time is from the
// release to its completion, including stream synchronisation.
#include <algorithm>
#include <functional>

#include "host/clock.hpp"
#include "host/team.hpp"
#include "measure/interval.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

constexpr std::size_t kMostRepetitions = 1 << 16;
constexpr int kOverheadSamples = 25;

std::vector<std::vector<int>> cpus_of(const std::vector<Part>& parts) {
    std::vector<std::vector<int>> cpus;
    for (const Part& part : parts) cpus.push_back(part.cpu);
    return cpus;
}

class HostTimer final : public Timer {
public:
    explicit HostTimer(const std::vector<Part>& parts)
        : parts_(parts), started_(parts.size()), finished_(parts.size()), team_(cpus_of(parts)) {}

    Timing take(std::size_t repetitions) override {
        const double released = run([&](std::size_t i) {
            for (std::size_t r = 0; r < repetitions; ++r) {
                parts_[i].start(r);
                parts_[i].execution->finish();
            }
        });
        Timing timing;
        for (const double finished : finished_) {
            timing.transfers.push_back((finished - released) / static_cast<double>(repetitions));
        }
        timing.span = std::ranges::max(timing.transfers);
        timing.skew = std::ranges::max(started_) - std::ranges::min(started_);
        return timing;
    }

    double once() override { return take(1).span; }

    double overhead() override {
        if (overhead_ < 0) {
            std::vector<double> samples(kOverheadSamples);
            for (double& sample : samples) {
                const double released = run([](std::size_t) {});
                sample = std::ranges::max(finished_) - released;
            }
            overhead_ = median_interval(std::move(samples)).median;
        }
        return overhead_;
    }

    [[nodiscard]] std::size_t most_repetitions() const override { return kMostRepetitions; }

private:
    // Runs the job on all threads at once; returns when the flag was raised.
    double run(const std::function<void(std::size_t)>& job) {
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

    const std::vector<Part>& parts_;
    std::vector<double> started_;
    std::vector<double> finished_;
    host::Team team_;
    double overhead_ = -1;
};

}  // namespace

std::unique_ptr<Timer> host_timer(const std::vector<Part>& parts) {
    return std::make_unique<HostTimer>(parts);
}

}  // namespace waywiser::measure
