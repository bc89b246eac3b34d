// Managed memory in a session: every execution finds its bytes at the source.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "executor/migration_fixture.hpp"
#include "waywiser/session.hpp"

namespace waywiser {
namespace {

constexpr StopRule kMigrationRule{
    .target = 0.5, .wanted = 0.5, .maximum = 200, .soft_seconds = 0.01, .hard_seconds = 0.1};

class MigrationInASession : public test::OnFake {
protected:
    [[nodiscard]] Outcome measure(std::vector<Transfer> transfers,
                                  Cache cache = Cache::warm) const {
        Session session(machine, {.memory_bytes = 512 * kMiB, .host_timed = {}});
        return session.measure(
            {.transfers = std::move(transfers), .cache = cache, .rule = kMigrationRule}, nullptr);
    }
    [[nodiscard]] Transfer move(const char* executor, const std::string& from,
                                const std::string& to, std::size_t bytes) const {
        Transfer transfer = test::migration(executor, from.c_str(), to.c_str());
        transfer.bytes = bytes;
        return transfer;
    }

    const Machine machine = test::this_machine();
    const std::string node = Place{Place::Kind::numa, machine.numa.front().index, {}}.text();
};

double fastest(const Outcome& outcome) {
    return std::ranges::min(outcome.samples, {}, &Sample::span).span;
}

// Bytes that are already there take no time: a sample without a restore would be too fast.
TEST_F(MigrationInASession, EverySampleMovesAllBytes) {
    fake::configure("h2d=1;d2h=2;peer=4");
    const auto seconds = [&](const std::string& from, const std::string& to) {
        const Outcome outcome = measure({move("prefetch", from, to, 2 * kMiB)});
        EXPECT_EQ(outcome.mode, TimingMode::device);
        EXPECT_GE(outcome.samples.size(), 6u);
        return fastest(outcome);
    };
    EXPECT_GE(seconds(node, "gpu:0"), 2e-3);
    EXPECT_GE(seconds("gpu:1", node), 1e-3);
    EXPECT_GE(seconds("gpu:0", "gpu:1"), 0.5e-3);
}

// Several repetitions in a sample each move their own bytes.
TEST_F(MigrationInASession, EveryRepetitionMovesItsBytes) {
    fake::configure("h2d=8");
    const Outcome outcome = measure({move("prefetch", node, "gpu:0", 8192)});
    EXPECT_GT(outcome.samples.front().repetitions, 1u);
    EXPECT_GE(fastest(outcome), 8.192e-6) << "the 64 KiB that the fake moves as one, at 8 GB/s";
}

TEST_F(MigrationInASession, TouchesAreTimedByWhoTouches) {
    const Outcome by_gpu = measure({move("page-fault", node, "gpu:0", 40000)});
    EXPECT_EQ(by_gpu.mode, TimingMode::device);
    const Outcome by_cpu = measure({move("page-fault", "gpu:0", node, 40000)}, Cache::flushed);
    EXPECT_EQ(by_cpu.mode, TimingMode::host);
}

TEST_F(MigrationInASession, BidirectionalTransfersEachHaveABuffer) {
    const Outcome outcome =
        measure({move("prefetch", node, "gpu:0", kMiB), move("prefetch", "gpu:0", node, kMiB)});
    EXPECT_EQ(outcome.mode, TimingMode::device);
    EXPECT_GE(outcome.samples.size(), 6u);
    const Outcome mixed =
        measure({move("page-fault", node, "gpu:0", kMiB), move("page-fault", "gpu:0", node, kMiB)});
    EXPECT_EQ(mixed.mode, TimingMode::host);
}

}  // namespace
}  // namespace waywiser
