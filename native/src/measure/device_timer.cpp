// Device timing: all work is enqueued behind a closed gate and starts together when it opens. Each
// transfer is timed between two events of each of its lanes; the slowest counts.
#include <algorithm>
#include <map>
#include <set>

#include "host/clock.hpp"
#include "measure/timed_lane.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

// A stream takes about a thousand entries before it blocks the host: gate, events and repetitions
// stay well below.
constexpr std::size_t kMostEntries = 400;

class DeviceTimer final : public Timer {
public:
    DeviceTimer(const std::vector<Part>& parts, gpu::Gate& gate, Watchdog& watchdog)
        : parts_(parts), gate_(gate), watchdog_(watchdog), several_(any_has_several_lanes(parts)) {
        for (const Part& part : parts) {
            for (gpu::Stream* lane : part.lanes) lanes_.emplace_back(*lane);
            streams_.insert(part.lanes.begin(), part.lanes.end());
            entries_ = std::max(entries_, part.execution->entries());
            window_ = std::max(window_, part.execution->window());
        }
    }

    Timing take(std::size_t repetitions) override {
        behind_gate(streams_, gate_, watchdog_, [&] {
            for (TimedLane& lane : lanes_) lane.start.record(*lane.stream);
            for (std::size_t r = 0; r < repetitions; ++r) {
                for (const Part& part : parts_) part.start(r);
            }
            for (TimedLane& lane : lanes_) lane.stop.record(*lane.stream);
        });
        Timing timing;
        auto lane = lanes_.begin();
        for (const Part& part : parts_) {
            std::vector<double> seconds;
            for (std::size_t n = 0; n < part.lanes.size(); ++n, ++lane) {
                seconds.push_back(lane->seconds() / static_cast<double>(repetitions));
            }
            timing.transfers.push_back(std::ranges::max(seconds));
            if (several_) timing.lanes.push_back(std::move(seconds));
        }
        const Together together = seen_together();
        timing.span = together.span / static_cast<double>(repetitions);
        timing.skew = together.skew;
        return timing;
    }

    double once() override {
        const double start = host::now();
        for (const Part& part : parts_) part.start(0);
        for (gpu::Stream* stream : streams_) stream->synchronize();
        return host::now() - start;
    }

    double overhead() override {
        if (overhead_ < 0) {
            overhead_ = empty_interval(*lanes_.front().stream, gate_, watchdog_);
        }
        return overhead_;
    }

    [[nodiscard]] std::size_t least_repetitions() const override {
        return std::min(window_, most_repetitions());
    }
    [[nodiscard]] std::size_t most_repetitions() const override {
        return std::max<std::size_t>(1, kMostEntries / entries_);
    }

private:
    struct Together {
        double span = 0;  // from the first start to the last stop
        double skew = 0;  // from the first start to the last
    };

    // Events of two devices cannot be subtracted, so the longest span of any device counts. Streams
    // of one device may run one after another although the gate is open, so the longest interval of
    // a stream would be too short.
    [[nodiscard]] Together seen_together() const {
        struct Seen {
            const gpu::Event* origin;
            double first = 0, last = 0, stop = 0;  // seconds from the origin
        };
        std::map<int, Seen> devices;
        for (const TimedLane& lane : lanes_) {
            Seen& seen =
                devices.try_emplace(lane.stream->device(), Seen{&lane.start}).first->second;
            const double start = gpu::seconds_between(*seen.origin, lane.start);
            seen.first = std::min(seen.first, start);
            seen.last = std::max(seen.last, start);
            seen.stop = std::max(seen.stop, gpu::seconds_between(*seen.origin, lane.stop));
        }
        Together together;
        for (const auto& [device, seen] : devices) {
            together.span = std::max(together.span, seen.stop - seen.first);
            together.skew = std::max(together.skew, seen.last - seen.first);
        }
        return together;
    }

    const std::vector<Part>& parts_;
    gpu::Gate& gate_;
    Watchdog& watchdog_;
    std::vector<TimedLane> lanes_;
    std::set<gpu::Stream*> streams_;
    bool several_;             // lanes of a transfer
    std::size_t entries_ = 1;  // maximum of one repetition on one stream
    std::size_t window_ = 1;   // maximum of starts in flight together
    double overhead_ = -1;
};

}  // namespace

std::unique_ptr<Timer> device_timer(const std::vector<Part>& parts, gpu::Gate& gate,
                                    Watchdog& watchdog) {
    return std::make_unique<DeviceTimer>(parts, gate, watchdog);
}

}  // namespace waywiser::measure
