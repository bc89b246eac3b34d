// Kernels that move runs: the widest possible access, every byte in its place, tables on a GPU.
#include "executor/runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"
#include "many_bytes.hpp"

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
    Arrangement arrangement = arrange(transfer, Side::source);
    const View view{address(4096), transfer.bytes, &transfer.path.source, &arrangement};
    EXPECT_EQ(runs_of(view).access(16), 16u);
    arrangement.pitch += 4;
    EXPECT_EQ(runs_of(view).access(16), 4u);
    arrangement.plane += 2;
    EXPECT_EQ(runs_of(view).access(16), 2u);
}

TEST(Runs, OnePieceIsCutIntoTheRunsOfTheOtherSide) {
    const Runs cut = Runs::together(address(4096), 60).cut(12);
    EXPECT_EQ(cut.count, 5u);
    EXPECT_EQ(cut.at(4), address(4096 + 48));
}

class RunsOnFake : public test::OnFake {};

TEST_F(RunsOnFake, TablesDoNotNeedTheArrangementThatTheyWereMadeOf) {
    const Transfer transfer =
        test::in_list("sm", test::at("pinned", "numa:0"), test::at("device", "gpu:0"));
    auto made = std::make_unique<Arrangement>(arrange(transfer, Side::source));
    const std::vector<std::size_t> offsets = made->offsets;
    const RunTable table(made.get(), 0);
    made->offsets.assign(made->offsets.size(), 0);
    made.reset();
    const Arrangement same = arrange(transfer, Side::source);
    const View view{address(4096), transfer.bytes, &transfer.path.source, &same};
    const auto copies = fake::counts().copies;
    const Runs runs = table.of(view, address(12288));
    EXPECT_EQ(fake::counts().copies, copies) << "the table is on the GPU";
    EXPECT_EQ(runs.access(16), 16u);
    for (std::size_t n = 0; n < offsets.size(); ++n) EXPECT_EQ(runs.offsets[n], offsets[n]);
}

TEST_F(RunsOnFake, TablesRejectAViewThatLiesOtherwise) {
    const Transfer transfer =
        test::in_list("sm", test::at("pinned", "numa:0"), test::at("device", "gpu:0"));
    Arrangement arrangement = arrange(transfer, Side::source);
    const RunTable table(&arrangement, 0);
    const View view{address(4096), transfer.bytes, &transfer.path.source, &arrangement};
    EXPECT_NO_THROW((void)table.of(view, view.data));
    --arrangement.count;
    EXPECT_THROW((void)table.of(view, view.data), NotSupported);
}

TEST(Runs, ADivisorDividesAllThatItMay) {
    for (const std::uint32_t by : {1u, 2u, 3u, 5u, 7u, 8u, 63u, 64u, 65u, 641u, 65535u, 65536u,
                                   1000003u, (1u << 30) - 1, 1u << 30}) {
        const transfer::Divisor divisor(by);
        for (const std::uint64_t about : {0UL, 1UL, 2UL, 1000UL, 1UL << 16, 1UL << 29, 1UL << 31}) {
            for (std::uint64_t k = about / by; k < about / by + 3; ++k) {
                for (const std::uint64_t n : {k * by - 1, k * by, k * by + 1}) {
                    if (n >= 1UL << 31) continue;
                    ASSERT_EQ(divisor.divide(static_cast<std::uint32_t>(n)), n / by) << n << by;
                }
            }
        }
    }
}

// Gather, scatter, and runs to runs, at all alignments, by few and many threads.
TEST_F(RunsOnFake, BringEveryByteAndTouchNoOther) {
    fake::configure("latency=0;event=0");
    std::mt19937 random(3);
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
    const gpu::Stream stream(0);
    for (int i = 0; i < 400; ++i) {
        const std::size_t unit = std::size_t{1} << pick(5);
        const std::size_t run = unit * (1 + pick(40));
        const std::size_t count = 1 + pick(60);
        const std::size_t capacity = 3 * run * count + 64;
        const gpu::DeviceBuffer a(0, capacity);
        const gpu::DeviceBuffer b(0, capacity);
        const auto sent = test::sequence(capacity, static_cast<unsigned>(i));
        std::vector<std::byte> expected(capacity, std::byte{0xEE});
        gpu::copy_sync(a.data(), sent.data(), capacity, 0);
        gpu::copy_sync(b.data(), expected.data(), capacity, 0);
        const auto side = [&](std::vector<std::size_t>& offsets, std::byte* data) {
            const std::size_t start = unit * pick(16 / unit + 1);
            if (pick(3) == 0) {
                for (std::size_t n = 0; n < count; ++n) offsets.push_back(start + n * run);
                return Runs::together(data + start, run * count);
            }
            if (pick(3) == 0) {  // planes of rows
                const std::size_t height = 1 + pick(4);
                const std::size_t pitch = run + unit * pick(2);
                const std::size_t plane = pitch * (height + pick(2));
                for (std::size_t n = 0; n < count; ++n) {
                    offsets.push_back(start + n / height * plane + n % height * pitch);
                }
                return Runs{.data = data + start,
                            .run = run,
                            .count = count,
                            .pitch = pitch,
                            .height = height,
                            .plane = plane,
                            .bits = run | pitch | plane};
            }
            for (std::size_t n = 0; n < count; ++n) offsets.push_back(start + 2 * n * run);
            std::shuffle(offsets.begin(), offsets.end(), random);
            Runs runs{.data = data, .run = run, .count = count, .pitch = run};
            runs.offsets = offsets.data();
            runs.bits = run | start;
            for (const std::size_t offset : offsets) runs.bits |= offset;
            return runs;
        };
        std::vector<std::size_t> from_offsets;
        std::vector<std::size_t> to_offsets;
        const Runs from = side(from_offsets, a.data());
        const Runs to = side(to_offsets, b.data());
        // Planes may be longer than the test's buffers.
        if (from_offsets.back() + run > capacity || to_offsets.back() + run > capacity) continue;
        for (std::size_t n = 0; n < count; ++n) {
            std::copy_n(sent.data() + from_offsets[n], run, expected.data() + to_offsets[n]);
        }
        const gpu::Shape shape{.blocks = 1 + static_cast<unsigned>(pick(3)),
                               .threads = 32U << pick(3)};
        move_runs(stream, shape, to, from, pick(4) == 0 ? 4 : 16);
        stream.synchronize();
        ASSERT_TRUE(test::same_bytes(b.data(), expected.data(), capacity)) << "case " << i;
    }
}

// Offsets of a table that are less aligned than the runs are long: accesses are narrower then.
TEST_F(RunsOnFake, FollowOffsetsThatAreLessAligned) {
    constexpr std::size_t kRun = 32;
    const Memory memory = test::at("device", "gpu:0");
    const Arrangement arrangement{.kind = Layout::Kind::list,
                                  .run = kRun,
                                  .count = 3,
                                  .extent = 201,
                                  .offsets = {169, 4, 62}};
    const gpu::DeviceBuffer apart(0, arrangement.extent);
    const gpu::DeviceBuffer packed(0, 3 * kRun);
    const auto sent = test::sequence(arrangement.extent, 4);
    gpu::copy_sync(apart.data(), sent.data(), sent.size(), 0);
    const gpu::Stream stream(0);
    const RunTable table(&arrangement, 0);
    const View view{apart.data(), 3 * kRun, &memory, &arrangement};
    const Runs runs = table.of(view, apart.data());
    EXPECT_EQ(runs.access(16), 1u);
    move_runs(stream, {.blocks = 2, .threads = 64}, Runs::together(packed.data(), 3 * kRun), runs);
    stream.synchronize();
    std::vector<std::byte> arrived(3 * kRun);
    gpu::copy_sync(arrived.data(), packed.data(), arrived.size(), 0);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
        ASSERT_EQ(arrived[i], sent[arrangement.offsets[i / kRun] + i % kRun]) << i;
    }
}

}  // namespace
}  // namespace waywiser
