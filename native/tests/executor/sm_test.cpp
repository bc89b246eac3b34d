// Copies by kernels: which GPU runs them, what they can access, and correct bytes for any alignment
// of the two sides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "case_stride.hpp"
#include "conformance.hpp"
#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"

namespace waywiser {
namespace {

using test::at;
using test::OnFake;

Transfer transfer(const Memory& from, const Memory& to, const Settings& parameters = {},
                  std::size_t bytes = 4096) {
    return {{from, to, "sm"}, bytes, parameters};
}

const Executor& sm() { return *Executors::instance().find("sm"); }

// Two GPUs with peer access to each other, and one without.
Machine three_gpus() {
    return {.numa = {{0, {0}}}, .gpus = {{0, "a", -1, {1}}, {1, "b", -1, {0}}, {2, "c", -1, {}}}};
}

TEST(SmExecutor, RunsOnTheGpuOfTheSideThatWorks) {
    const Machine machine = three_gpus();
    const auto worker = [&](const Transfer& t) { return sm().lanes(t, machine); };
    const Memory host = at("pinned", "numa:0");
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    EXPECT_EQ(worker(transfer(host, other)), std::vector{1});
    EXPECT_EQ(worker(transfer(other, host)), std::vector{1});
    EXPECT_EQ(worker(transfer(one, other)), std::vector{1});
    EXPECT_EQ(worker(transfer(one, other, {{"side", "pull"}})), std::vector{1});
    EXPECT_EQ(worker(transfer(one, other, {{"side", "push"}})), std::vector{0});
    EXPECT_EQ(worker(transfer(one, one)), std::vector{0});
}

TEST(SmExecutor, LetsOneChooseTheSideBetweenGpusAlone) {
    const Machine machine = three_gpus();
    const Settings pull{{"side", "pull"}};
    const Memory host = at("pinned", "numa:0");
    const Memory one = at("device", "gpu:0");
    EXPECT_FALSE(unsupported_reason(transfer(one, at("device", "gpu:1"), pull), machine));
    EXPECT_TRUE(unsupported_reason(transfer(host, one, pull), machine));
    EXPECT_TRUE(unsupported_reason(transfer(one, one, pull), machine));
    EXPECT_FALSE(unsupported_reason(transfer(host, one, {{"grid", "paper"}}), machine));
}

TEST(SmExecutor, NeedsPeerAccessBetweenGpusAlone) {
    const Machine machine = three_gpus();
    const Memory one = at("device", "gpu:0");
    EXPECT_EQ(sm().peer_access(transfer(one, at("device", "gpu:1")), machine), true);
    EXPECT_EQ(sm().peer_access(transfer(one, one), machine), std::nullopt);
    EXPECT_EQ(sm().peer_access(transfer(one, at("pinned", "numa:0")), machine), std::nullopt);
}

TEST(SmExecutor, LeavesMemoryOfAnotherProcessToItsOwnGpu) {
    const Machine machine = three_gpus();
    const Memory one = at("device", "gpu:0");
    Memory foreign = at("device", "gpu:1");
    foreign.variant["from"] = "ipc";
    EXPECT_FALSE(unsupported_reason(transfer(one, foreign), machine));
    EXPECT_TRUE(unsupported_reason(transfer(one, foreign, {{"side", "push"}}), machine));
    EXPECT_TRUE(unsupported_reason(transfer(foreign, one), machine));
    EXPECT_FALSE(unsupported_reason(transfer(foreign, one, {{"side", "push"}}), machine));
}

TEST(SmExecutor, RejectsWhatNoKernelReaches) {
    Machine machine = three_gpus();
    const Memory one = at("device", "gpu:0");
    const auto reason = [&](const Memory& from, const Memory& to) {
        return unsupported_reason(transfer(from, to), machine).value_or("");
    };
    EXPECT_EQ(reason(one, at("device", "gpu:2")),
              "gpu:0 and gpu:2 cannot access each other's memory directly");
    EXPECT_EQ(reason(at("pinned", "numa:0"), at("pinned", "numa:0")),
              "a kernel copies on the GPU of one side, and neither side is on a GPU");
    EXPECT_EQ(reason(at("pageable", "numa:0"), one),
              "kernels of gpu:0 cannot address pageable memory: no pageable memory access (HMM or "
              "ATS)");
    EXPECT_EQ(reason(one, at("write-combined", "numa:0")), "");
    machine.gpus[0].pageable_access = true;
    EXPECT_EQ(reason(at("pageable", "numa:0"), one), "");
    machine.gpus.clear();
    EXPECT_NE(reason(at("pinned", "numa:0"), one), "");
}

class SmOnFake : public OnFake {
protected:
    const Machine machine = test::this_machine();

    // Copies once with the given offsets from a multiple of 256.
    [[nodiscard]] std::string copied(const Transfer& t, std::size_t from, std::size_t to) const {
        test::GuardedTransfer bytes(t, machine);
        const test::Caller caller(t, machine);
        const auto execution = caller.prepare();
        return test::move_once(caller, *execution, bytes, {from, to}, 7);
    }
};

// Every pair of remainders modulo the widest access, at sizes around it.
TEST_F(SmOnFake, CopiesWhateverTheAlignmentOfEitherSide) {
    const std::size_t kStep = test::many_sizes() ? 1 : 5;
    for (const char* grid : {"tuned", "paper"}) {
        for (std::size_t from = 0; from < 16; from += kStep) {
            for (std::size_t to = 0; to < 16; to += kStep) {
                for (const std::size_t bytes : {1UL, 15UL, 16UL, 33UL, 4099UL}) {
                    const Transfer t = transfer(at("pinned", "numa:0"), at("device", "gpu:1"),
                                                {{"grid", grid}}, bytes);
                    ASSERT_EQ(copied(t, from, to), "") << t.text() << " " << from << " " << to;
                }
            }
        }
    }
}

// More than all blocks copy in one round: threads do several rounds, and the last one is partial.
TEST_F(SmOnFake, CopiesWhatTakesSeveralRounds) {
    constexpr std::size_t kBytes = (std::size_t{3} << 20) + 40;
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    for (const char* side : {"pull", "push"}) {
        EXPECT_EQ(copied(transfer(one, other, {{"side", side}}, kBytes), 0, 0), "");
    }
    EXPECT_EQ(copied(transfer(one, one, {}, kBytes), 8, 4), "");
    EXPECT_EQ(copied(transfer(one, at("pinned", "numa:0"), {{"grid", "paper"}}, kBytes), 1, 1), "");
}

Transfer listed(const Memory& from, const Memory& to, const Settings& parameters = {}) {
    Transfer t = transfer(from, to, parameters, 512UL * 40);
    t.layout = {Layout::Kind::list, {{"piece", "512"}}};
    return t;
}

TEST(SmExecutor, TakesListsOverAHostsLinkByAsManyBlocksAsAreAskedFor) {
    const Machine machine = three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory one = at("device", "gpu:0");
    const Settings two{{"blocks", "2"}};
    EXPECT_EQ(parameter(sm(), listed(host, one), machine, "blocks"), "1") << "the gentle one";
    EXPECT_FALSE(unsupported_reason(listed(host, one, two), machine));
    EXPECT_FALSE(unsupported_reason(listed(one, host, two), machine));
    EXPECT_TRUE(unsupported_reason(listed(one, at("device", "gpu:1"), two), machine));
    EXPECT_TRUE(unsupported_reason(listed(one, one, two), machine));
    EXPECT_TRUE(unsupported_reason(transfer(host, one, two), machine)) << "of contiguous bytes";
}

TEST(SmExecutor, CountsTheTablesOfAList) {
    const Machine machine = three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory one = at("device", "gpu:1");
    const auto bytes = [&](const Transfer& t) {
        return sm().requirements(t, machine).device_bytes;
    };
    EXPECT_EQ(bytes(listed(host, one)), (std::map<int, std::size_t>{{1, 2 * 40 * 8}}));
    EXPECT_TRUE(bytes(transfer(host, one)).empty());
}

TEST_F(SmOnFake, MovesListsByAnyNumberOfBlocks) {
    for (const char* blocks : {"1", "2", "16", "3"}) {
        const Transfer t =
            listed(at("device", "gpu:0"), at("pinned", "numa:0"), {{"blocks", blocks}});
        test::GuardedTransfer bytes(t, machine);
        const test::Caller caller(t, machine);
        const auto execution = caller.prepare();
        EXPECT_EQ(test::move_once(caller, *execution, bytes, {}, 5), "") << blocks;
    }
}

TEST_F(SmOnFake, LaunchesOneKernelForAStart) {
    const Transfer t = transfer(at("pinned", "numa:0"), at("device", "gpu:0"));
    const auto before = fake::counts();
    EXPECT_EQ(copied(t, 0, 0), "");
    EXPECT_EQ(fake::counts().launches, before.launches + 1);
}

// Every run arrives at its place in the destination's arrangement, and nothing between the runs.
TEST_F(SmOnFake, MovesBoxesAndListsRunByRun) {
    const Layout box{Layout::Kind::box, {{"width", "48"}, {"pitch", "80"}, {"height", "5"}}};
    const Layout list{Layout::Kind::list, {{"piece", "36"}}};
    for (const Layout& layout : {box, list}) {
        for (const char* grid : {"tuned", "paper"}) {
            Transfer t = transfer(at("pinned", "numa:0"), at("device", "gpu:0"), {{"grid", grid}});
            t.layout = layout;
            t.bytes = 48UL * 36 * 5;
            ASSERT_EQ(unsupported_reason(t, machine), std::nullopt) << t.text();
            const Arrangement out = arrange(t, Side::source);
            const Arrangement in = arrange(t, Side::destination);
            const gpu::HostBuffer source(out.extent, gpu::HostUse::portable, 0);
            const gpu::DeviceBuffer destination(0, in.extent);
            const auto sent = test::sequence(out.extent, 3);
            std::ranges::copy(sent, source.data());
            std::vector<std::byte> expected(in.extent, std::byte{0xEE});
            gpu::copy_sync(destination.data(), expected.data(), in.extent, 0);
            for (std::size_t n = 0; n < in.count; ++n) {
                std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(out.offset(n)), out.run,
                            expected.begin() + static_cast<std::ptrdiff_t>(in.offset(n)));
            }
            const test::Caller caller(t, machine);
            caller.run(*caller.prepare(), {source.data(), t.bytes, &t.path.source, &out},
                       {destination.data(), t.bytes, &t.path.destination, &in});
            std::vector<std::byte> arrived(in.extent);
            gpu::copy_sync(arrived.data(), destination.data(), in.extent, 0);
            EXPECT_EQ(arrived, expected) << t.text();
        }
    }
}

}  // namespace
}  // namespace waywiser
