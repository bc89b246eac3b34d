// Kernels that move runs: the widest access that fits, and tables that go to a GPU once.
#include "executor/runs.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"

namespace waywiser {
namespace {

std::byte* address(std::uintptr_t at) { return reinterpret_cast<std::byte*>(at); }

TEST(Runs, AreAccessedAsWidelyAsAllOfThemAllow) {
    EXPECT_EQ(Runs::together(address(4096), 64).access(16), 16u);
    EXPECT_EQ(Runs::together(address(4096), 64).access(4), 4u);
    EXPECT_EQ(Runs::together(address(4096 + 8), 64).access(16), 8u);
    EXPECT_EQ(Runs::together(address(4096 + 1), 64).access(16), 1u);
    EXPECT_EQ(Runs::together(address(4096), 36).access(16), 4u);
    const Transfer transfer =
        test::in_box("sm", test::at("pinned", "numa:0"), test::at("device", "gpu:0"));
    Arrangement lie = arrange(transfer, Side::source);
    const View view{address(4096), transfer.bytes, &transfer.path.source, &lie};
    EXPECT_EQ(Runs::of(view).access(16), 16u);
    lie.pitch += 4;
    EXPECT_EQ(Runs::of(view).access(16), 4u);
    lie.plane += 2;
    EXPECT_EQ(Runs::of(view).access(16), 2u);
}

TEST(Runs, OnePieceIsCutIntoTheRunsOfTheOtherSide) {
    const Runs cut = Runs::together(address(4096), 60).cut(12);
    EXPECT_EQ(cut.count, 5u);
    EXPECT_EQ(cut.at(4), address(4096 + 48));
}

class RunsOnFake : public test::OnFake {};

TEST_F(RunsOnFake, TablesGoToTheGpuOnce) {
    const Transfer transfer =
        test::in_list("sm", test::at("pinned", "numa:0"), test::at("device", "gpu:0"));
    const Arrangement source = arrange(transfer, Side::source);
    const Arrangement destination = arrange(transfer, Side::destination);
    const View from{address(4096), transfer.bytes, &transfer.path.source, &source};
    const View to{address(8192), transfer.bytes, &transfer.path.destination, &destination};
    RunTables tables(0);
    const Runs first = tables.of(from, from.data);
    EXPECT_NE(tables.of(to, to.data).offsets, first.offsets);
    const auto copies = fake::counts().copies;
    EXPECT_EQ(tables.of(from, address(12288)).offsets, first.offsets);
    EXPECT_EQ(fake::counts().copies, copies);
    EXPECT_EQ(first.access(16), 16u);
}

// Offsets of a table that are less aligned than the runs are long: accesses follow them.
TEST_F(RunsOnFake, FollowOffsetsThatAreLessAligned) {
    constexpr std::size_t kRun = 32;
    const Memory memory = test::at("device", "gpu:0");
    const Arrangement lie{.kind = Layout::Kind::list,
                          .run = kRun,
                          .count = 3,
                          .extent = 201,
                          .offsets = {169, 4, 62}};
    const gpu::DeviceBuffer apart(0, lie.extent);
    const gpu::DeviceBuffer packed(0, 3 * kRun);
    const auto sent = test::sequence(lie.extent, 4);
    gpu::copy_sync(apart.data(), sent.data(), sent.size(), 0);
    const gpu::Stream stream(0);
    RunTables tables(0);
    const View view{apart.data(), 3 * kRun, &memory, &lie};
    const Runs runs = tables.of(view, apart.data());
    EXPECT_EQ(runs.access(16), 1u);
    move_runs(stream, {.blocks = 2, .threads = 64}, Runs::together(packed.data(), 3 * kRun), runs);
    stream.synchronize();
    std::vector<std::byte> arrived(3 * kRun);
    gpu::copy_sync(arrived.data(), packed.data(), arrived.size(), 0);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
        ASSERT_EQ(arrived[i], sent[lie.offsets[i / kRun] + i % kRun]) << i;
    }
}

}  // namespace
}  // namespace waywiser
