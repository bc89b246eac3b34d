#include "measure/bounded_engine.hpp"

#include <gtest/gtest.h>

#include <string>

#include "measure/session_test.hpp"
#include "transfer/engine.hpp"

namespace waywiser {
namespace {

class BoundedEngineTest : public SessionTest {
protected:
    static Request staged(std::size_t bytes) {
        return request("pageable", node.c_str(), "device", "gpu:0", "staged", bytes,
                       {{"threads", "1"}, {"slots", "2"}, {"chunk", "1048576"}});
    }
    static Request relayed(std::size_t bytes) {
        return request("pinned", node.c_str(), "device", "gpu:0", "relay", bytes,
                       {{"slots", "2"}, {"chunk", "1048576"}});
    }
    const Machine machine = test::this_machine();
};

TEST_F(BoundedEngineTest, PlainCopiesTakeNoStaging) {
    measure::BoundedEngine bounded(machine, 64 * kMiB, true);
    bounded.prepare(to_gpu(kMiB), 2 * kMiB);
    EXPECT_EQ(bounded.staging_bytes(), 0u);
}

TEST_F(BoundedEngineTest, StagingIsReusedByLaterWorkloadsIfTheLimitAllows) {
    measure::BoundedEngine bounded(machine, 64 * kMiB, true);
    const transfer::Engine* const first = &bounded.prepare(staged(kMiB), 2 * kMiB);
    const std::size_t bytes = bounded.staging_bytes();
    EXPECT_GE(bytes, 1 * kMiB);
    EXPECT_LE(bytes, 62 * kMiB);
    EXPECT_EQ(&bounded.prepare(staged(16 * kMiB), 32 * kMiB), first);
    EXPECT_EQ(bounded.staging_bytes(), bytes) << "the engine was replaced";
    bounded.prepare(to_gpu(8 * kMiB), 16 * kMiB);
    EXPECT_EQ(bounded.staging_bytes(), bytes);
}

TEST_F(BoundedEngineTest, StagingIsFreedForBuffersThatNeedItsMemory) {
    measure::BoundedEngine bounded(machine, 64 * kMiB, true);
    bounded.prepare(staged(16 * kMiB), 32 * kMiB);
    EXPECT_GT(bounded.staging_bytes(), 0u);
    bounded.prepare(to_gpu(32 * kMiB), 64 * kMiB);
    EXPECT_EQ(bounded.staging_bytes(), 0u);
    const transfer::Engine& tight = bounded.prepare(staged(31 * kMiB), 62 * kMiB);
    EXPECT_EQ(bounded.staging_bytes(), 2 * kMiB);
    EXPECT_EQ(tight.options().pinned_bytes, 2 * kMiB);
}

TEST_F(BoundedEngineTest, RequirementsAreReportedIfTheyDoNotFit) {
    measure::BoundedEngine bounded(machine, 64 * kMiB, true);
    const transfer::Engine& engine = bounded.prepare(staged(32 * kMiB), 64 * kMiB);
    EXPECT_EQ(bounded.staging_bytes(), 2 * kMiB);
    EXPECT_EQ(engine.options().pinned_bytes, 1u);
}

TEST_F(BoundedEngineTest, StagingOnRelaysCounts) {
    measure::BoundedEngine bounded(machine, 64 * kMiB, true);
    const transfer::Engine& engine = bounded.prepare(relayed(16 * kMiB), 32 * kMiB);
    EXPECT_EQ(bounded.staging_bytes(), 2 * kMiB);
    EXPECT_EQ(engine.options().relay_bytes, 2 * kMiB);
}

TEST_F(BoundedEngineTest, ASessionKeepsItsBoundWithStagedCopiesAndRejectsWhatExceedsIt) {
    options.memory_bytes = 32 * kMiB;
    expect_valid(measure(staged(8 * kMiB)), 1);
    expect_valid(measure(to_gpu(16 * kMiB)), 1);
    expect_valid(measure(relayed(8 * kMiB)), 1);
    EXPECT_THROW(measure(staged(16 * kMiB)), NotSupported);
    expect_valid(measure(staged(15 * kMiB)), 1);
}

}  // namespace
}  // namespace waywiser
