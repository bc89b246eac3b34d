// Sessions that measure exchanges among several ranks, which are threads, over the fake GPU.
#include <algorithm>
#include <thread>

#include "case_stride.hpp"
#include "measure/rank_measurements.hpp"
#include "measure/session_test.hpp"
#include "ranks/rank_places.hpp"
#include "ranks/thread_messenger.hpp"

namespace waywiser::exchanges {
namespace {

using ranks::Messenger;
using test::ThreadWorld;
using test::ThreadWorldOptions;

constexpr int kRanks = 4;
// More than any command or time between samples.
constexpr std::size_t kPart = 1024;
// A small memory, so that buffers have no more bytes than they need.
constexpr std::size_t kMemory = std::size_t{1} << 24;
// Two messages, of two parts each.
constexpr std::size_t kBytes = std::size_t{2} * 2 * kPart;

class AlltoallSession : public test::OnFake {
protected:
    ~AlltoallSession() override { fake::reset(); }

    // Two GPUs, dealt to the ranks in turn.
    static Machine machine() {
        return test::with_ranks(kRanks, [](int rank) { return rank % 2; });
    }
    static Request request(const char* executor, const Settings& parameters) {
        const Memory memory{"device", {Place::Kind::rank, 0, {}, kRanks - 1}, {}};
        StopRule few = kQuick;
        few.minimum = few.slow_minimum = 2;
        few.maximum = 3;
        return {.transfers = {{{memory, memory, executor}, kBytes, parameters}},
                .operation = {},
                .rule = few};
    }

    static test::RankMeasurements measure(const Request& requested,
                                          ThreadWorldOptions options = {}) {
        options.counted_bytes = kPart;
        ThreadWorld world(kRanks, options);
        return test::measure_in_ranks(world, machine(), requested, [](int) { return kMemory; });
    }
};

const std::vector<Settings> kStrategies = test::few_of(std::vector<Settings>{
    {{"strategy", "direct"}},
    {{"strategy", "direct"}, {"exchange", "pairs"}},
    {},
    {{"unique", "1/2"}},
    {{"strategy", "extra-message"}},
    {{"strategy", "extra-message"}, {"split", "messages"}},
    {{"strategy", "extra-message"}, {"unique", "1/2"}},
    {{"strategy", "duplicate-pointer"}},
    {{"strategy", "duplicate-pointer"}, {"exchange", "pairs"}},
    {{"strategy", "duplicate-pointer"}, {"unique", "1/2"}, {"split", "messages"}}});

std::size_t ranks_in(const Settings& settings) {
    const auto strategy = settings.find("strategy");
    return strategy == settings.end() || strategy->second == "direct" ? 2 : 4;
}

TEST_F(AlltoallSession, StoresTheTimeOfEveryRankAndTheSlowestCounts) {
    for (const char* executor : {"alltoall", "alltoallv"}) {
        for (const Settings& settings : kStrategies) {
            const Request requested = request(executor, settings);
            SCOPED_TRACE(requested.transfers.front().text());
            const test::RankMeasurements found = measure(requested);
            ASSERT_FALSE(found.outcomes[0].samples.empty()) << found.said[0];
            for (const Sample& sample : found.outcomes[0].samples) {
                ASSERT_EQ(sample.lanes.size(), 1u);
                ASSERT_EQ(sample.lanes[0].size(), ranks_in(settings));
                EXPECT_GT(std::ranges::min(sample.lanes[0]), 0);
                EXPECT_EQ(std::ranges::max(sample.lanes[0]), sample.transfers[0]);
                EXPECT_EQ(sample.span, sample.transfers[0]);
                EXPECT_GE(sample.skew, 0);
            }
            // The first rank of each GPU has its memory.
            EXPECT_EQ(found.outcomes[0].buffers.size(), 2u);
            EXPECT_EQ(found.outcomes[1].buffers.size(), 2u);
            EXPECT_TRUE(found.outcomes[2].buffers.empty());
            EXPECT_TRUE(found.outcomes[1].samples.empty());
            EXPECT_TRUE(found.outcomes[3].samples.empty());
        }
    }
}

TEST_F(AlltoallSession, FlagsWhatIsNotMuchLongerThanTheSkewOfTheBarrier) {
    // Ranks leave the barrier one message after another. A sample is 20 times as long only if the
    // machine holds a rank up meanwhile, which it does not for the shortest of them.
    const test::RankMeasurements found =
        measure(request("alltoall", {{"strategy", "extra-message"}}),
                {.delay = std::chrono::milliseconds(5)});
    ASSERT_FALSE(found.outcomes[0].samples.empty());
    for (const Sample& sample : found.outcomes[0].samples) EXPECT_GT(sample.skew, 0);
    const auto shortest = std::ranges::min_element(found.outcomes[0].samples, {}, &Sample::span);
    EXPECT_NE(shortest->flags & flag_below_resolution, 0u);
}

TEST_F(AlltoallSession, ADelayedMessageIsInTheTime) {
    const test::RankMeasurements found = measure(request("alltoall", {{"exchange", "pairs"}}),
                                                 {.delay = std::chrono::milliseconds(2)});
    ASSERT_FALSE(found.outcomes[0].samples.empty());
    // Each rank sends two messages.
    for (const Sample& sample : found.outcomes[0].samples) EXPECT_GE(sample.span, 4e-3);
}

TEST_F(AlltoallSession, FindsWrongBytesOfEveryRankWithEachStrategy) {
    const std::string others = "alltoallv";  // the messages are those of alltoall
    for (const std::string& executor : {std::string("alltoall"), others}) {
        for (const Settings& settings : kStrategies) {
            for (const int rank : {0, 1, 2, 3}) {
                if (ranks_in(settings) == 2 && rank > 1) continue;
                if (executor == others && rank > 0) continue;
                const Request requested = request(executor.c_str(), settings);
                SCOPED_TRACE(requested.transfers.front().text() + ", rank " + std::to_string(rank));
                const test::RankMeasurements found =
                    measure(requested, {.flips = test::MessageOfRank{rank, 1}});
                std::string all;
                for (std::size_t n = 0; n < ranks_in(settings); ++n) {
                    EXPECT_FALSE(found.said[n].empty()) << "rank " << n;
                    all += found.said[n];
                }
                EXPECT_NE(all.find("1 of 2048 bytes are wrong at the destination device"),
                          std::string::npos)
                    << all;
            }
        }
    }
}

TEST_F(AlltoallSession, AMessageThatFailsIsAnErrorOfAllRanks) {
    for (const Settings& settings : kStrategies) {
        for (const std::uint64_t message : {1, 4}) {
            EXPECT_THROW(
                measure(request("alltoall", settings), {.fails = test::MessageOfRank{1, message}}),
                ranks::MessengerError);
        }
    }
}

TEST_F(AlltoallSession, TheStageNamesTheCallOfARankThatHangs) {
    ThreadWorld world(kRanks, {.hangs = test::MessageOfRank{1, 1}, .counted_bytes = kPart});
    std::string blocked;
    std::jthread watcher([&] {
        while (world.stage(1).text().find("alltoall") == std::string::npos) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        blocked = world.stage(1).text();
        world.end();
    });
    const Machine own = machine();
    EXPECT_THROW(world.run([&](Messenger& messenger) {
        Session session(own, {.messenger = &messenger});
        (void)session.measure(request("alltoall", {}), nullptr);
    }),
                 ranks::MessengerError);
    watcher.join();
    EXPECT_NE(blocked.find("alltoall"), std::string::npos) << blocked;
}

TEST_F(AlltoallSession, WhatOneRankCannotDoEndsInAll) {
    // Only the second has so little memory.
    const auto memory = [](int rank) { return rank == 1 ? 64 : std::size_t{1} << 30; };
    for (const Settings& settings : kStrategies) {
        if (ranks_in(settings) < kRanks) continue;
        ThreadWorld world(kRanks);
        const auto [outcomes, said] =
            test::measure_in_ranks(world, machine(), request("alltoall", settings), memory);
        EXPECT_EQ(said[0], "rank:1");
        EXPECT_NE(said[1].find("raise --memory"), std::string::npos) << said[1];
        EXPECT_EQ(said[2], "rank:1");
        EXPECT_EQ(said[3], "rank:1");
    }
}

}  // namespace
}  // namespace waywiser::exchanges
