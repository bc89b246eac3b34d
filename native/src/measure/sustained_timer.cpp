// Sustained timing: each transfer while the others run throughout, and alone in turn. Each has a
// host thread, which repeats it until the slowest of them has done its repetitions. By the host's
// clock, so that the time of a call that has to wait for another thread's counts.
//
// First each transfer runs alone, one after another, then all together. A repetition of the
// transfers that others outlast counts by the share of it that was over when the last one was done.
#include <algorithm>
#include <atomic>

#include "host/clock.hpp"
#include "measure/common_release.hpp"
#include "measure/timed_lane.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

// How long a short transfer is repeated alone. It is repeated together with the others too, so that
// nothing else differs.
constexpr double kAloneSeconds = 0.01;

// Times of the repetitions of one transfer.
class Member {
public:
    Member(const Part& part, Underway& underway) : part_(part), underway_(underway) {
        batch_ = part.execution->window();
        if (part.lanes.size() < 2) return;
        for (gpu::Stream* lane : part.lanes) lanes_.emplace_back(*lane);
    }

    void begin() {
        first_ = last_start_ = last_stop_ = host::now();
        count_ = 0;
        lane_seconds_.assign(lanes_.size(), 0.0);
    }

    // Returns when the repetition was done.
    double repeat() {
        last_start_ = host::now();
        underway_.since.store(last_start_);
        for (TimedLane& lane : lanes_) lane.start.record(*lane.stream);
        for (std::size_t n = 0; n < batch_; ++n) part_.start(n);
        for (TimedLane& lane : lanes_) lane.stop.record(*lane.stream);
        part_.execution->finish();
        last_stop_ = host::now();
        underway_.since.store(0);
        for (std::size_t n = 0; n < lanes_.size(); ++n) lane_seconds_[n] += lanes_[n].seconds();
        ++count_;
        return last_stop_;
    }

    // Seconds of one execution, of those until `end`.
    [[nodiscard]] double seconds(double end) const {
        const double until = std::min(end, last_stop_);
        const double of_last = (until - last_start_) / std::max(last_stop_ - last_start_, 1e-9);
        const double repetitions = static_cast<double>(count_ - 1) + of_last;
        return (until - first_) / (repetitions * static_cast<double>(batch_));
    }

    // Returns the seconds of each GPU by its own events, over all repetitions. A transfer with one
    // lane has its own seconds there.
    [[nodiscard]] std::vector<double> lanes(double seconds) const {
        if (lane_seconds_.empty()) return {seconds};
        std::vector<double> found = lane_seconds_;
        for (double& lane : found) lane /= static_cast<double>(count_ * batch_);
        return found;
    }

    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] double elapsed() const { return last_stop_ - first_; }

private:
    const Part& part_;
    Underway& underway_;
    std::size_t batch_ = 1;
    std::vector<TimedLane> lanes_;  // of each GPU, if there are several
    double first_ = 0, last_start_ = 0, last_stop_ = 0;
    std::size_t count_ = 0;
    std::vector<double> lane_seconds_;
};

class SustainedTimer final : public Timer {
public:
    SustainedTimer(const std::vector<Part>& parts, std::vector<Underway>& underway)
        : parts_(parts), release_(parts) {
        members_.reserve(parts.size());
        for (std::size_t i = 0; i < parts.size(); ++i) members_.emplace_back(parts[i], underway[i]);
    }

    Timing take(std::size_t repetitions) override {
        Timing timing;
        for (std::size_t i = 0; i < parts_.size(); ++i)
            timing.alone.push_back(alone(i, repetitions));
        const double end = together(repetitions);
        const bool several = any_has_several_lanes(parts_);
        for (const Member& member : members_) {
            const double seconds = member.seconds(end);
            timing.transfers.push_back(seconds);
            if (several) timing.lanes.push_back(member.lanes(seconds));
        }
        timing.span = std::ranges::max(timing.transfers);
        timing.skew = release_.skew();
        return timing;
    }

    // Each alone, in the order of the workload: what a first execution loads, maps or allocates may
    // wait for all work of a GPU, and a collective for another GPU.
    double once() override {
        const double start = host::now();
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            release_.run([&](std::size_t own) {
                if (own != i) return;
                members_[i].begin();
                members_[i].repeat();
            });
        }
        return host::now() - start;
    }

    double overhead() override { return release_.overhead(); }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostRepetitions; }

private:
    double alone(std::size_t i, std::size_t least) {
        Member& member = members_[i];
        release_.run([&](std::size_t own) {
            if (own != i) return;
            member.begin();
            do {
                member.repeat();
            } while (member.count() < least || member.elapsed() < kAloneSeconds);
        });
        return member.seconds(host::now());
    }

    // Returns when the last member had done its repetitions.
    double together(std::size_t least) {
        std::atomic<std::size_t> left{members_.size()};
        std::atomic<double> end{0};
        release_.run([&](std::size_t i) {
            Member& member = members_[i];
            member.begin();
            try {
                while (end.load() == 0) {
                    const double done = member.repeat();
                    if (member.count() == least && --left == 0) end.store(done);
                }
            } catch (...) {
                end.store(host::now());  // the others need not go on
                throw;
            }
        });
        return end.load();
    }

    const std::vector<Part>& parts_;
    CommonRelease release_;
    std::vector<Member> members_;
};

}  // namespace

std::unique_ptr<Timer> sustained_timer(const std::vector<Part>& parts,
                                       std::vector<Underway>& underway) {
    return std::make_unique<SustainedTimer>(parts, underway);
}

}  // namespace waywiser::measure
