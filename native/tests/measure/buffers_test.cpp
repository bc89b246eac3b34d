#include "measure/buffers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "conformance.hpp"
#include "fake/fake.hpp"
#include "units.hpp"

namespace waywiser::measure {
namespace {

class Buffers : public ::testing::Test {
protected:
    Buffers() { fake::reset(); }
    ~Buffers() override { EXPECT_EQ(fake::live(), fake::Live{}); }

    const Machine machine = test::this_machine();
    const Memory device{"device", Place::parse("gpu:0"), {}};
    const Memory other{"device", Place::parse("gpu:1"), {}};
};

TEST_F(Buffers, AreLentAgainWhenNobodyHoldsThem) {
    BufferPool pool(machine, 100 * kMiB);
    const std::byte* data = pool.take(device, kMiB)->data();
    EXPECT_EQ(pool.take(device, 5)->data(), data);
    const auto held = pool.take(device, kMiB);
    EXPECT_NE(pool.take(device, kMiB)->data(), held->data());
    EXPECT_NE(pool.take(other, kMiB)->data(), data);
}

TEST_F(Buffers, AreFreedForOthersWithinTheLimit) {
    BufferPool pool(machine, 10 * kMiB);
    pool.take(device, 6 * kMiB);
    const auto next = pool.take(other, 6 * kMiB);
    EXPECT_EQ(pool.bytes(), 6 * kMiB);
    EXPECT_LE(pool.peak_bytes(), 10 * kMiB);
    EXPECT_EQ(fake::live().device_buffers, 1u);
    EXPECT_THROW(pool.take(device, 5 * kMiB), NotSupported);
    EXPECT_THROW(pool.take(device, 11 * kMiB), NotSupported);
    EXPECT_NO_THROW(pool.take(device, 4 * kMiB));
}

// If the limit allows, small buffers are larger than requested; never at the cost of others.
TEST_F(Buffers, OfManyTransfersAreNoLargerThanTheBoundHolds) {
    BufferPool pool(machine, 1024 * kMiB);
    EXPECT_GT(pool.take(device, kMiB)->bytes(), kMiB);
    const std::vector<BufferPool::Spec> specs(100, {device, kMiB});
    const auto taken = pool.take(specs);
    EXPECT_EQ(taken.size(), 100u);
    EXPECT_LE(pool.peak_bytes(), 1024 * kMiB);
}

// A small workload does not reuse a large idle buffer if the rest would not fit then.
TEST_F(Buffers, LeftByALargeWorkloadAreFreedForAnySmallerOne) {
    BufferPool pool(machine, 10 * kMiB);
    pool.take(device, 9 * kMiB);
    EXPECT_EQ(pool.take({{device, 2 * kMiB}, {device, 2 * kMiB}, {other, 6 * kMiB}}).size(), 3u);
    EXPECT_THROW(pool.take({{device, 5 * kMiB}, {other, 6 * kMiB}}), NotSupported);
}

TEST_F(Buffers, LeaveTheLargerOneToWhoNeedsIt) {
    BufferPool pool(machine, 20 * kMiB);
    {
        const auto large = pool.take(device, 12 * kMiB);
        const auto small = pool.take(device, 4 * kMiB);
    }
    const auto small = pool.take(device, kMiB);
    EXPECT_EQ(small->bytes(), 4 * kMiB);
    EXPECT_NO_THROW(pool.take(device, 12 * kMiB));
}

// A GPU may have less memory than the limit, and than small buffers usually get.
TEST_F(Buffers, TakeNoMoreThanAskedWhereAGpuHasNoMore) {
    fake::configure("memory=40");
    BufferPool pool(machine, 2048 * kMiB);
    EXPECT_EQ(pool.take(device, kMiB)->bytes(), kMiB);
    EXPECT_THROW(pool.take(device, 41 * kMiB), gpu::Error);
}

TEST_F(Buffers, GiveUpWhatIsIdleWhereAGpuHasNoMore) {
    fake::configure("memory=100");
    BufferPool pool(machine, 2048 * kMiB);
    Memory mapped = device;
    mapped.variant["from"] = "vmm";
    pool.take(mapped, 80 * kMiB);
    EXPECT_EQ(pool.take(device, 80 * kMiB)->bytes(), 80 * kMiB);
}

TEST_F(Buffers, AreGivenUpOnRequest) {
    BufferPool pool(machine, 10 * kMiB);
    pool.take(device, kMiB);
    const auto held = pool.take(other, kMiB);
    pool.clear();
    EXPECT_EQ(pool.bytes(), kMiB);
    EXPECT_EQ(fake::live().device_buffers, 1u);
}

}  // namespace
}  // namespace waywiser::measure
