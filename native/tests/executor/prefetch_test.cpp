// Prefetches managed memory: it moves there and back, and its bytes do not change.
#include <gtest/gtest.h>

#include "executor/migration_fixture.hpp"

namespace waywiser {
namespace {

using test::location;
using test::Migration;
using test::migration;

Transfer prefetch(const char* from, const char* to, const Settings& variant = {}) {
    return migration("prefetch", from, to, {}, variant);
}

class PrefetchOnFake : public test::OnFake {
protected:
    const Machine machine = test::this_machine();
};

TEST_F(PrefetchOnFake, MovesThereAndBack) {
    const std::pair<const char*, const char*> pairs[] = {
        {"numa:0", "gpu:0"}, {"gpu:1", "numa:0"}, {"gpu:0", "gpu:1"}};
    for (const char* advice : {"none", "preferred", "read-mostly", "accessed-by"}) {
        for (const auto& [from, to] : pairs) {
            const Transfer transfer = prefetch(from, to, {{"advice", advice}});
            SCOPED_TRACE(transfer.text());
            ASSERT_EQ(unsupported_reason(transfer, machine), std::nullopt);
            const Migration move(transfer, machine, 8 * kMiB);
            for (int round = 0; round < 2; ++round) {
                move.restore(0, 8 * kMiB);
                EXPECT_EQ(move.at(0), location(from));
                EXPECT_EQ(move.at(8 * kMiB - 1), location(from));
                move.start(0, 8 * kMiB);
                EXPECT_EQ(move.at(0), location(to));
                EXPECT_EQ(move.at(8 * kMiB - 1), location(to));
            }
            EXPECT_TRUE(move.holds_what_was_sent());
        }
    }
}

TEST_F(PrefetchOnFake, MovesItsViewAndBringsBackWholeGranules) {
    const Migration move(prefetch("numa:0", "gpu:0"), machine, 8 * kMiB);
    move.restore(0, 8 * kMiB);
    move.start(2 * kMiB + 100, 3);
    EXPECT_EQ(move.at(2 * kMiB), location("gpu:0"));
    EXPECT_EQ(move.at(kMiB), location("numa:0"));
    EXPECT_EQ(move.at(3 * kMiB), location("numa:0"));
    move.start(2 * kMiB, 2 * kMiB);
    move.restore(2 * kMiB + 100, 3);
    EXPECT_EQ(move.at(2 * kMiB), location("numa:0"));
    EXPECT_EQ(move.at(4 * kMiB - 1), location("numa:0"));
    EXPECT_TRUE(move.holds_what_was_sent());
}

TEST_F(PrefetchOnFake, IsOrderedByAStreamOfTheGpuThatItMovesTo) {
    const auto lanes = [&](const char* from, const char* to) {
        const Transfer transfer = prefetch(from, to);
        const Executor& executor = *Executors::instance().find("prefetch");
        EXPECT_EQ(executor.timing(transfer, machine), TimingMode::device);
        EXPECT_TRUE(executor.in_place(transfer, machine));
        EXPECT_FALSE(executor.repeatable(transfer, machine));
        return executor.lanes(transfer, machine);
    };
    EXPECT_EQ(lanes("numa:0", "gpu:1"), std::vector{1});
    EXPECT_EQ(lanes("gpu:1", "numa:0"), std::vector{1});
    EXPECT_EQ(lanes("gpu:1", "gpu:0"), std::vector{0});
}

TEST_F(PrefetchOnFake, WaitsForItsStream) {
    const Migration move(prefetch("numa:0", "gpu:0"), machine, 2 * kMiB);
    move.restore(0, 2 * kMiB);
    gpu::Gate gate{0};
    gate.close(*move.caller().lanes().front());
    move.execution().start(move.view(0, 2 * kMiB), move.view(0, 2 * kMiB));
    EXPECT_EQ(move.at(0), location("numa:0"));
    gate.open();
    move.execution().finish();
    EXPECT_EQ(move.at(0), location("gpu:0"));
}

TEST(Prefetch, RejectsWithAReason) {
    const Machine machine{.numa = {{0, {0}}, {1, {1}}}, .gpus = {{0, "a"}, {1, "b"}}};
    const auto reason = [&](const Transfer& transfer) {
        return unsupported_reason(transfer, machine).value_or("");
    };
    EXPECT_EQ(reason(prefetch("numa:1", "gpu:1")), "");
    EXPECT_EQ(reason(prefetch("numa:0", "numa:1")),
              "managed memory migrates from or to a GPU, not between NUMA nodes");
    EXPECT_EQ(reason(prefetch("gpu:0", "gpu:0")), "the bytes are there already");
    Transfer pinned = prefetch("numa:0", "gpu:0");
    pinned.path.source.kind = "pinned";
    EXPECT_EQ(reason(pinned), "pinned memory stays where it is: only managed memory migrates");
    EXPECT_NE(
        unsupported_reason(prefetch("numa:0", "gpu:0"), Machine{.numa = {{0, {0}}}, .gpus = {}}),
        std::nullopt);
}

// The buffer is allocated as the source says.
TEST(Prefetch, TakesTheAdviceOfTheSource) {
    const Machine machine{.numa = {{0, {0}}}, .gpus = {{0, "a"}}};
    Transfer transfer = prefetch("numa:0", "gpu:0", {{"advice", "preferred"}});
    EXPECT_EQ(unsupported_reason(transfer, machine), std::nullopt);
    transfer.path.destination.variant["advice"] = "preferred";
    EXPECT_EQ(unsupported_reason(transfer, machine), std::nullopt);
    transfer.path.source.variant.clear();
    EXPECT_EQ(unsupported_reason(transfer, machine),
              "both sides are one buffer: give its advice at the source");
}

}  // namespace
}  // namespace waywiser
