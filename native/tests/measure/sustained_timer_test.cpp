#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fake/fixture.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

constexpr auto kBrief = std::chrono::milliseconds(2);
constexpr auto kLasting = std::chrono::milliseconds(40);

// Takes longer while another one runs.
struct Planted final : Execution {
    Planted(std::atomic<int>& running, std::chrono::milliseconds alone,
            std::chrono::milliseconds beside)
        : running(running), alone(alone), beside(beside) {}
    void start(const View&, const View&) override {
        ++started;
        const bool others = ++running > 1;
        most = std::max(most, running.load());
        std::this_thread::sleep_for(others ? beside : alone);
        --running;
    }
    std::atomic<int>& running;
    std::chrono::milliseconds alone, beside;
    int started = 0;
    int most = 0;
};

struct Failing final : Execution {
    void start(const View&, const View&) override { throw std::runtime_error("lost"); }
};

class SustainedTimerTest : public test::OnFake {
protected:
    Planted& add(std::chrono::milliseconds alone, std::chrono::milliseconds beside) {
        Part part;
        auto made = std::make_unique<Planted>(running, alone, beside);
        Planted& added = *made;
        part.execution = std::move(made);
        parts.push_back(std::move(part));
        return added;
    }
    std::atomic<int> running{0};
    std::vector<Part> parts;
};

TEST_F(SustainedTimerTest, TimesEachWhileTheOthersRunAndAloneInTurn) {
    const Planted& slowed = add(kBrief, 5 * kBrief);
    const Planted& longer = add(kLasting, kLasting);
    std::vector<Underway> underway(2);
    const auto timer = sustained_timer(parts, underway);
    timer->once();
    EXPECT_EQ(slowed.most, 1) << "each begins alone";
    // On a busy machine the longer one may begin late, or a sleep alone be long: one sample of many
    // shows what was planted.
    const auto is_slower = [](const Timing& sample) {
        return sample.transfers.at(0) > 1.5 * sample.alone.at(0) &&
               sample.transfers.at(0) >= std::chrono::duration<double>(2 * kBrief).count();
    };
    Timing timing = timer->take(1);
    for (int n = 0; n < 100 && !is_slower(timing); ++n) timing = timer->take(1);
    EXPECT_EQ(slowed.most, 2);
    ASSERT_EQ(timing.transfers.size(), 2u);
    ASSERT_EQ(timing.alone.size(), 2u);
    EXPECT_GT(timing.transfers[0], 1.5 * timing.alone[0]);
    EXPECT_GE(timing.transfers[0], std::chrono::duration<double>(2 * kBrief).count());
    EXPECT_GE(timing.alone[0], std::chrono::duration<double>(kBrief).count());
    EXPECT_GE(timing.transfers[1], std::chrono::duration<double>(kLasting).count());
    EXPECT_EQ(timing.span, std::max(timing.transfers[0], timing.transfers[1]));
    EXPECT_GE(slowed.started, 4) << "it repeats until the other one is done";
    EXPECT_GE(longer.started, 3);
    EXPECT_TRUE(timing.lanes.empty());
}

TEST_F(SustainedTimerTest, RepeatsEachAsOftenAsAsked) {
    add(kBrief, kBrief);
    const Planted& longer = add(kLasting, kLasting);
    std::vector<Underway> underway(2);
    sustained_timer(parts, underway)->take(2);
    EXPECT_GE(longer.started, 4) << "alone and together";
}

TEST_F(SustainedTimerTest, SaysWhatIsUnderWay) {
    add(kLasting, kLasting);
    std::vector<Underway> underway(1);
    const auto timer = sustained_timer(parts, underway);
    EXPECT_EQ(underway[0].since.load(), 0);
    std::jthread measuring([&] { timer->once(); });
    while (underway[0].since.load() == 0) std::this_thread::yield();
    measuring.join();
    EXPECT_EQ(underway[0].since.load(), 0);
}

TEST_F(SustainedTimerTest, EndsIfOneFails) {
    add(kBrief, kBrief);
    Part part;
    part.execution = std::make_unique<Failing>();
    parts.push_back(std::move(part));
    std::vector<Underway> underway(2);
    const auto timer = sustained_timer(parts, underway);
    EXPECT_THROW(timer->take(1), std::runtime_error);
}

}  // namespace
}  // namespace waywiser::measure
