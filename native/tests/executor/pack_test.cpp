// Gather, copy, scatter: where each step runs, and which are skipped.
#include <gtest/gtest.h>

#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"

namespace waywiser {
namespace {

using test::at;
using test::in_box;
using test::in_list;

const Executor& pack() { return *Executors::instance().find("pack"); }

TEST(Pack, IsTimedByTheDeviceWhereNoCpuHasAPart) {
    const Machine machine = test::three_gpus();
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    const Memory alone = at("device", "gpu:2");
    const Memory host = at("pinned", "numa:0");
    const auto timing = [&](const Memory& from, const Memory& to) {
        return pack().timing(in_box("pack", from, to), machine);
    };
    EXPECT_EQ(timing(one, one), TimingMode::device);
    EXPECT_EQ(timing(one, other), TimingMode::device);
    EXPECT_EQ(timing(one, alone), TimingMode::host) << "the runtime stages";
    EXPECT_EQ(timing(one, host), TimingMode::host);
    EXPECT_EQ(timing(host, one), TimingMode::host);
    EXPECT_EQ(pack().peer_access(in_box("pack", one, other), machine), true);
    EXPECT_EQ(pack().peer_access(in_box("pack", one, alone), machine), false);
    EXPECT_EQ(pack().peer_access(in_box("pack", one, one), machine), std::nullopt);
}

TEST(Pack, TakesALaneOnEachGpu) {
    const Machine machine = test::three_gpus();
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    const Memory host = at("pinned", "numa:0");
    const auto lanes = [&](const Memory& from, const Memory& to) {
        return pack().lanes(in_box("pack", from, to), machine);
    };
    EXPECT_EQ(lanes(one, other), (std::vector{0, 1}));
    EXPECT_EQ(lanes(other, other), std::vector{1});
    EXPECT_EQ(lanes(host, other), std::vector{1});
    EXPECT_EQ(lanes(other, host), std::vector{1});
}

TEST(Pack, HasThreadsWhereAHostHasAPart) {
    const Machine machine = test::three_gpus();
    const Memory one = at("device", "gpu:0");
    const auto takes = [&](Transfer transfer, const char* threads) {
        transfer.parameters["threads"] = threads;
        return !unsupported_reason(transfer, machine);
    };
    EXPECT_TRUE(takes(in_box("pack", one, at("pinned", "numa:0")), "3"));
    EXPECT_FALSE(takes(in_box("pack", one, at("pinned", "numa:0")), "4"));
    EXPECT_FALSE(takes(in_box("pack", one, one), "1"));
}

TEST(Pack, RejectsWhatIsNotItsWork) {
    const Machine machine = test::three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:0");
    EXPECT_NE(unsupported_reason(in_box("pack", host, host), machine), std::nullopt);
    EXPECT_NE(unsupported_reason({{host, gpu, "pack"}, 512, {}}, machine), std::nullopt);
    EXPECT_NE(unsupported_reason(in_box("pack", at("managed", "gpu:0"), host), machine),
              std::nullopt);
}

TEST(Pack, CountsItsStaging) {
    const Machine machine = test::three_gpus();
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    const Memory host = at("pinned", "numa:0");
    const auto needs = [&](const Memory& from, const Memory& to) {
        return pack().requirements(in_box("pack", from, to), machine);
    };
    constexpr std::size_t kSlot = 4096;  // for 2,560 bytes
    using OnDevices = std::map<int, std::size_t>;
    EXPECT_EQ(needs(one, other).device_bytes, (OnDevices{{0, kSlot}, {1, kSlot}}));
    EXPECT_EQ(needs(one, one).device_bytes, (OnDevices{{0, kSlot}}));
    EXPECT_EQ(needs(host, one).device_bytes, (OnDevices{{0, kSlot}}));
    EXPECT_EQ(needs(host, one).pinned_bytes, kSlot);
    EXPECT_EQ(needs(one, host).pinned_bytes, kSlot);
    EXPECT_EQ(needs(one, other).pinned_bytes, 0U);
    EXPECT_EQ(pack().requirements(in_list("pack", host, one), machine).device_bytes,
              (OnDevices{{0, 8192 + 12 * 8}}));
}

class PackOnFake : public test::OnFake {
protected:
    const Machine machine = test::this_machine();

    struct Work {
        std::size_t launches, copies, allocations;
        bool operator==(const Work&) const = default;
    };
    // For a later start than the first.
    Work work(const Transfer& transfer) const {
        test::Ready ready(transfer, machine);
        ready.bytes.lay({}, 9);
        const auto before = fake::counts();
        ready.caller.run(*ready.execution, ready.bytes.source(), ready.bytes.destination());
        const auto after = fake::counts();
        EXPECT_EQ(ready.bytes.wrong(), "");
        EXPECT_LE(after.events - before.events, ready.execution->entries());
        return {after.launches - before.launches, after.copies - before.copies,
                after.allocations - before.allocations};
    }
};

// After the first start nothing is allocated, and no table is copied to a GPU again.
TEST_F(PackOnFake, DoesEachStepOnce) {
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    const Memory host = at("pinned", "numa:0");
    for (const auto& shape :
         {in_list, +[](const char* executor, const Memory& from, const Memory& to, const char*) {
              return in_box(executor, from, to);
          }}) {
        EXPECT_EQ(work(shape("pack", one, other, "both")), (Work{2, 1, 0}));
        EXPECT_EQ(work(shape("pack", one, one, "both")), (Work{2, 0, 0}));
        EXPECT_EQ(work(shape("pack", one, host, "both")), (Work{1, 1, 0}));
        EXPECT_EQ(work(shape("pack", host, one, "both")), (Work{1, 1, 0}));
    }
}

// Contiguous bytes are neither gathered nor scattered, unless a CPU has to access them.
TEST_F(PackOnFake, CopiesWhatLiesTogetherDirectly) {
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    const Memory host = at("pinned", "numa:0");
    EXPECT_EQ(work(in_list("pack", one, other, "source")), (Work{1, 1, 0}));
    EXPECT_EQ(work(in_list("pack", one, other, "destination")), (Work{1, 1, 0}));
    EXPECT_EQ(work(in_list("pack", one, one, "destination")), (Work{1, 0, 0}));
    EXPECT_EQ(work(in_list("pack", one, one, "source")), (Work{1, 1, 0}));
    EXPECT_EQ(work(in_list("pack", host, one, "source")), (Work{0, 1, 0}));
    EXPECT_EQ(work(in_list("pack", one, host, "source")), (Work{1, 1, 0}));
}

// Staging memory belongs to the engine: it is reused by the next execution, and bounded.
TEST_F(PackOnFake, SharesTheStagingOfTheEngine) {
    const Transfer transfer = in_box("pack", at("device", "gpu:0"), at("device", "gpu:1"));
    const test::Caller caller(transfer, machine);
    {
        const auto first = caller.prepare();
    }
    const auto before = fake::counts().allocations;
    {
        const auto second = caller.prepare();
    }
    EXPECT_EQ(fake::counts().allocations, before);
    Transfer large = transfer;
    large.bytes = 64UL * 8 << 18;  // twice the budget
    const auto alone = caller.executor().prepare(large, machine, caller.lanes(), caller.engine());
    EXPECT_THROW((void)caller.prepare(), NotSupported);
}

// The first lane's events include the scatter on the second GPU.
TEST_F(PackOnFake, TheFirstLaneWaitsForTheSecond) {
    test::Ready ready(in_box("pack", at("device", "gpu:0"), at("device", "gpu:1")), machine);
    ready.bytes.lay({}, 5);
    gpu::Gate gate{0};
    gate.close(*ready.caller.lanes().back());
    ready.execution->start(ready.bytes.source(), ready.bytes.destination());
    EXPECT_FALSE(ready.caller.lanes().front()->done());
    gate.open();
    ready.caller.lanes().front()->synchronize();
    EXPECT_EQ(ready.bytes.wrong(), "");
}

}  // namespace
}  // namespace waywiser
