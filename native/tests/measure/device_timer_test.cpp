#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

constexpr auto kBusy = std::chrono::milliseconds(400);

struct Idle final : Execution {
    void start(const View&, const View&) override {}
};

struct Many final : Execution {
    explicit Many(std::size_t count) : count(count) {}
    void start(const View&, const View&) override {}
    [[nodiscard]] std::size_t entries() const override { return count; }
    std::size_t count;
};

struct Sleep {
    void operator()(gpu::Thread) const { std::this_thread::sleep_for(kBusy); }
};

// Occupies one of its lanes.
struct Busy final : Execution {
    explicit Busy(gpu::Stream& lane) : lane(lane) {}
    void start(const View&, const View&) override { gpu::launch(lane, {}, Sleep{}); }
    gpu::Stream& lane;
};

class DeviceTimerTest : public test::OnFake {
protected:
    gpu::Stream first{0};
    gpu::Stream second{0};
    gpu::Stream elsewhere{1};
    gpu::Gate gate{0};
    Watchdog watchdog{gate, 20};

    static std::vector<Part> parts(const std::vector<gpu::Stream*>& streams) {
        std::vector<Part> made;
        for (gpu::Stream* stream : streams) {
            Part part;
            part.execution = std::make_unique<Idle>();
            part.lanes = {stream};
            made.push_back(std::move(part));
        }
        return made;
    }
};

// With a stream that starts late, the span includes the time between the two starts.
TEST_F(DeviceTimerTest, SpansFromTheFirstStartToTheLastStopOfADevice) {
    const double busy = std::chrono::duration<double>(kBusy).count();
    for (const bool late_is_last : {true, false}) {
        const auto both = late_is_last ? parts({&first, &second}) : parts({&second, &first});
        const auto timer = device_timer(both, gate, watchdog);
        gpu::launch(second, {}, Sleep{});
        const Timing timing = timer->take(2);
        EXPECT_GT(timing.skew, busy / 2);
        EXPECT_GT(timing.span, busy / 4) << "of one repetition";
        for (const double transfer : timing.transfers) EXPECT_LT(transfer, busy / 4);
    }
}

TEST_F(DeviceTimerTest, ComparesNoEventsOfTwoDevices) {
    const auto apart = parts({&first, &elsewhere});
    const auto timer = device_timer(apart, gate, watchdog);
    const Timing timing = timer->take(1);
    EXPECT_EQ(timing.skew, 0);
    EXPECT_DOUBLE_EQ(timing.span, std::max(timing.transfers[0], timing.transfers[1]));
}

// A transfer over two GPUs ends when the slower one does.
TEST_F(DeviceTimerTest, TimesEveryLaneOfATransfer) {
    const double busy = std::chrono::duration<double>(kBusy).count();
    for (const bool slow_is_last : {true, false}) {
        auto made = parts({&first});
        made.front().lanes =
            slow_is_last ? std::vector{&first, &elsewhere} : std::vector{&elsewhere, &first};
        made.front().execution = std::make_unique<Busy>(elsewhere);
        const Timing timing = device_timer(made, gate, watchdog)->take(2);
        ASSERT_EQ(timing.lanes.size(), 1u);
        const std::vector<double>& lanes = timing.lanes.front();
        ASSERT_EQ(lanes.size(), 2u);
        EXPECT_GT(lanes[slow_is_last ? 1 : 0], busy * 0.9) << "of one repetition";
        EXPECT_LT(lanes[slow_is_last ? 0 : 1], busy / 4);
        EXPECT_EQ(timing.transfers, std::vector{std::ranges::max(lanes)});
        EXPECT_DOUBLE_EQ(timing.span, timing.transfers.front());
    }
}

TEST_F(DeviceTimerTest, KeepsNoLanesWhereEveryTransferHasOne) {
    const auto both = parts({&first, &second});
    EXPECT_TRUE(device_timer(both, gate, watchdog)->take(1).lanes.empty());
}

// A stream blocks its host at about a thousand entries if a gate holds them.
TEST_F(DeviceTimerTest, RepeatsLessWhereAStartHasManyEntries) {
    auto made = parts({&first, &second});
    EXPECT_EQ(device_timer(made, gate, watchdog)->most_repetitions(), 400u);
    made[1].execution = std::make_unique<Many>(4);
    EXPECT_EQ(device_timer(made, gate, watchdog)->most_repetitions(), 100u);
    made[1].execution = std::make_unique<Many>(5000);
    EXPECT_EQ(device_timer(made, gate, watchdog)->most_repetitions(), 1u);
}

}  // namespace
}  // namespace waywiser::measure
