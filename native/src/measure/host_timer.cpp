// Host timing: one thread per transfer, all released by one flag. A transfer's time is from the
// release to its completion, including stream synchronisation.
#include <algorithm>

#include "measure/common_release.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

class HostTimer final : public Timer {
public:
    explicit HostTimer(const std::vector<Part>& parts) : parts_(parts), release_(parts) {}

    Timing take(std::size_t repetitions) override {
        const double released = release_.run([&](std::size_t i) {
            for (std::size_t r = 0; r < repetitions; ++r) {
                parts_[i].start(r);
                parts_[i].execution->finish();
            }
        });
        Timing timing;
        for (const double finished : release_.finished()) {
            timing.transfers.push_back((finished - released) / static_cast<double>(repetitions));
        }
        timing.span = std::ranges::max(timing.transfers);
        timing.skew = release_.skew();
        return timing;
    }

    double once() override { return take(1).span; }
    double overhead() override { return release_.overhead(); }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostRepetitions; }

private:
    const std::vector<Part>& parts_;
    CommonRelease release_;
};

}  // namespace

std::unique_ptr<Timer> host_timer(const std::vector<Part>& parts) {
    return std::make_unique<HostTimer>(parts);
}

}  // namespace waywiser::measure
