// A session with executions and memories that are not repeatable.
#include <gtest/gtest.h>

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "test_kinds.hpp"
#include "waywiser/session.hpp"

namespace waywiser {
namespace {

constexpr StopRule kRepetitionRule{
    .target = 0.5, .wanted = 0.5, .maximum = 50, .soft_seconds = 0.01, .hard_seconds = 0.1};

constexpr int kTries = 20;

class Repetition : public test::OnFake {
protected:
    Repetition() {
        test::register_kinds();
        test::reset_kind_calls();
    }

    static Request request(const char* source, const char* executor, std::size_t bytes) {
        const Place place{Place::Kind::numa, test::this_machine().numa.front().index, {}};
        return {
            .transfers = {{{{source, place, {}}, {"pageable", place, {}}, executor}, bytes, {}}},
            .rule = kRepetitionRule};
    }
    static Outcome measure(const Request& requested) {
        return Session(test::this_machine(), {}).measure(requested, nullptr);
    }
    static std::size_t most(const Outcome& outcome) {
        std::size_t repetitions = 0;
        for (const Sample& sample : outcome.samples) {
            repetitions = std::max<std::size_t>(repetitions, sample.repetitions);
        }
        return repetitions;
    }
};

// The executor throws if one start follows another without a restore: none may, on any path.
TEST_F(Repetition, RestoresEveryPieceBeforeEachStart) {
    Outcome outcome = measure(request("pageable", test::kTurner, 4096));
    for (int tries = 1; tries < kTries && most(outcome) == 1; ++tries) {
        outcome = measure(request("pageable", test::kTurner, 4096));
    }
    EXPECT_GE(test::kind_calls().restores, test::kind_calls().starts);
    EXPECT_GT(most(outcome), 1u) << "short executions are still batched";
    EXPECT_LE(most(outcome), 64u);
    ASSERT_EQ(outcome.buffers.size(), 2u) << "one buffer is both sides";
}

TEST_F(Repetition, IsNoneOfLargeTransfers) {
    Request requested = request("pageable", test::kTurner, std::size_t{32} << 20);
    EXPECT_EQ(most(measure(requested)), 1u);
}

TEST_F(Repetition, ChecksBytesInPlace) {
    test::kind_calls().spoils = true;
    EXPECT_THROW(measure(request("pageable", test::kTurner, 4096)), WrongBytes);
}

// All repetitions of a sample are checked, not only the first.
TEST_F(Repetition, ChecksBytesOfLaterRepetitions) {
    test::kind_calls().spoils_others = true;
    std::size_t repetitions = 1;
    bool found = false;
    // On a busy machine one execution can seem long enough, and then none follows it.
    for (int tries = 0; tries < kTries && repetitions == 1 && !found; ++tries) {
        try {
            repetitions = most(measure(request("pageable", test::kTurner, 4096)));
        } catch (const WrongBytes&) {
            found = true;
        }
    }
    EXPECT_TRUE(found) << "at most " << repetitions << " repetitions in a sample";
}

TEST_F(Repetition, RestoresMemoryThatIsUsedUp) {
    const Outcome outcome = measure(request(test::kFading, "cpu", 4096));
    EXPECT_LE(most(outcome), 64u);
    EXPECT_GE(test::kind_calls().buffer_restores, outcome.samples.size());
    EXPECT_EQ(test::kind_calls().largest_restore,
              (most(outcome) - 1) * test::kFadingGranule + 4096);
}

TEST_F(Repetition, SharesOneBufferWhereAsked) {
    Request requested = request("pageable", "cpu", 64 << 10);
    requested.transfers.push_back(requested.transfers.front());
    requested.transfers.back().path.destination.variant["pages"] = "standard";
    requested.transfers.back().bytes = 4096;
    const std::size_t own = measure(requested).buffer_bytes;
    requested.shared = true;
    EXPECT_EQ(measure(requested).buffer_bytes, own / 4 * 3) << "one of four buffers is not taken";
    requested.cache = Cache::flushed;
    EXPECT_GT(measure(requested).samples.size(), 0u);
    requested.transfers.back().layout = {Layout::Kind::list, {{"piece", "512"}}};
    EXPECT_THROW(measure(requested), NotSupported);
}

}  // namespace
}  // namespace waywiser
