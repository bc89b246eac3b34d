#include "measure/buffer_plan.hpp"

#include <gtest/gtest.h>

#include <set>

#include "test_kinds.hpp"
#include "units.hpp"

namespace waywiser::measure {
namespace {

const Machine kMachine{.numa = {{0, {0}}, {1, {1}}}, .gpus = {}};

Memory at(const char* kind, int node = 0) { return {kind, {Place::Kind::numa, node, {}}, {}}; }

Transfer transfer(const Memory& from, const Memory& to, std::size_t bytes,
                  const char* executor = "cpu", const Layout& layout = {}) {
    return {{from, to, executor}, bytes, {}, layout};
}

Request request(std::vector<Transfer> transfers) {
    return {.transfers = std::move(transfers), .rule = {}};
}

Layout list(const char* piece) { return {Layout::Kind::list, {{"piece", piece}}}; }

class BufferPlans : public ::testing::Test {
protected:
    BufferPlans() { test::register_kinds(); }
};

TEST_F(BufferPlans, TakesTheBytesOfContiguousTransfersAndNoMore) {
    const BufferPlan plan =
        plan_buffers(request({transfer(at("pageable"), at("pageable"), 77)}), kMachine);
    ASSERT_EQ(plan.specs.size(), 2u);
    EXPECT_EQ(plan.specs[0].bytes, 77u);
    EXPECT_EQ(plan.specs[1].bytes, 77u);
    EXPECT_EQ(plan.slices, 1u);
    EXPECT_FALSE(plan.own_slices);
}

TEST_F(BufferPlans, TakesTheExtentOfWhatLiesApart) {
    const Transfer requested =
        transfer(at("pageable"), at("pageable"), 512UL * 100, "cpu", list("512"));
    const BufferPlan plan = plan_buffers(request({requested}), kMachine);
    EXPECT_EQ(plan.specs[0].bytes, arrange(requested, Side::source).extent);
    EXPECT_EQ(plan.specs[1].bytes, arrange(requested, Side::destination).extent);
}

TEST_F(BufferPlans, CutsSlicesWhereTheCachesMatter) {
    for (const Cache cache : {Cache::dirtied, Cache::flushed}) {
        Request requested = request({transfer(at("pageable"), at("pageable"), 5000)});
        requested.cache = cache;
        const BufferPlan plan = plan_buffers(requested, kMachine);
        EXPECT_TRUE(plan.own_slices);
        EXPECT_EQ(plan.slices, 64u);
        EXPECT_EQ(plan.transfers[0].stride, 8192u);
        EXPECT_EQ(plan.specs[0].bytes, 64u * 8192);
        requested.transfers[0].bytes = 4 * kMiB;
        EXPECT_EQ(plan_buffers(requested, kMachine).slices, 4u);
        requested.transfers[0].bytes = 64 * kMiB;
        EXPECT_EQ(plan_buffers(requested, kMachine).slices, 1u);
    }
}

// A page that the first repetition moved, or read into the cache, is not there for the second.
TEST_F(BufferPlans, CutsSlicesWhereAnExecutionIsNotTheSameTwice) {
    const BufferPlan once = plan_buffers(
        request({transfer(at("pageable"), at("pageable"), 4096, test::kTurner)}), kMachine);
    EXPECT_TRUE(once.own_slices);
    EXPECT_GT(once.slices, 1u);
    const BufferPlan used =
        plan_buffers(request({transfer(at(test::kFading), at("pageable"), 4096)}), kMachine);
    EXPECT_TRUE(used.own_slices);
    EXPECT_EQ(used.transfers[0].stride % test::kFadingGranule, 0u);
    EXPECT_LE(used.specs[0].bytes, 256 * kMiB) << "a large granule fills buffers quickly";
    EXPECT_GT(used.slices, 1u);
}

TEST_F(BufferPlans, KeepsTheSlicesOfManyTransfersWithinReason) {
    Request requested =
        request(std::vector<Transfer>(16, transfer(at(test::kFading), at(test::kFading), 4096)));
    const BufferPlan plan = plan_buffers(requested, kMachine);
    std::size_t together = 0;
    for (const auto& spec : plan.specs) together += spec.bytes;
    EXPECT_LE(together, 1024 * kMiB);
    EXPECT_GE(plan.slices, 1u);
}

TEST_F(BufferPlans, TakesOneBufferForBytesThatStay) {
    const BufferPlan plan = plan_buffers(
        request({transfer(at("pageable", 0), at("pageable", 1), 4096, test::kTurner)}), kMachine);
    ASSERT_EQ(plan.specs.size(), 1u);
    EXPECT_EQ(plan.specs[0].memory, at("pageable", 0));
    EXPECT_TRUE(plan.transfers[0].in_place);
    EXPECT_EQ(plan.transfers[0].source_buffer, plan.transfers[0].destination_buffer);
}

TEST_F(BufferPlans, SharesTheBuffersOfOneMemoryOnOneSide) {
    const Memory here = at("pageable", 0);
    const Memory there = at("pageable", 1);
    Request requested = request(
        {transfer(here, there, 4096), transfer(here, here, 9000), transfer(there, there, 100)});
    EXPECT_EQ(plan_buffers(requested, kMachine).specs.size(), 6u) << "their own, unless asked";
    requested.shared = true;
    const BufferPlan plan = plan_buffers(requested, kMachine);
    ASSERT_EQ(plan.specs.size(), 4u);
    EXPECT_EQ(plan.transfers[0].source_buffer, plan.transfers[1].source_buffer);
    EXPECT_EQ(plan.transfers[0].destination_buffer, plan.transfers[2].destination_buffer);
    EXPECT_NE(plan.transfers[1].destination_buffer, plan.transfers[1].source_buffer);
    EXPECT_EQ(plan.specs[plan.transfers[0].source_buffer].bytes, 9000u);
    EXPECT_EQ(plan.specs[plan.transfers[2].destination_buffer].bytes, 4096u);
    requested.cache = Cache::flushed;
    std::set<std::size_t> strides;
    for (const PlannedTransfer& planned : plan_buffers(requested, kMachine).transfers)
        strides.insert(planned.stride);
    EXPECT_EQ(strides, std::set<std::size_t>{12288}) << "slices of one buffer would overlap";
}

TEST_F(BufferPlans, RejectsToShareWhatLiesDifferently) {
    const Memory here = at("pageable", 0);
    const auto rejects = [&](std::vector<Transfer> transfers, bool shared = true) {
        Request requested = request(std::move(transfers));
        requested.shared = shared;
        return sharing_unsupported_reason(requested, kMachine).has_value();
    };
    const Transfer plain = transfer(here, here, 5120);
    const Transfer pieces = transfer(here, here, 5120, "cpu", list("512"));
    const Transfer fewer = transfer(here, here, 512, "cpu", list("512"));
    const Transfer in_place = transfer(here, at("pageable", 1), 5120, test::kTurner);
    EXPECT_FALSE(rejects({plain, plain}));
    EXPECT_FALSE(rejects({pieces, pieces}));
    EXPECT_TRUE(rejects({plain, pieces}));
    EXPECT_TRUE(rejects({pieces, fewer}));
    EXPECT_TRUE(rejects({in_place, in_place}));
    EXPECT_FALSE(rejects({plain, pieces, fewer, in_place}, false));
}

}  // namespace
}  // namespace waywiser::measure
