// The runtime's copies: the number of calls for a layout, and which clock times them.
#include <gtest/gtest.h>

#include "executor/shaped_transfers.hpp"
#include "fake/fixture.hpp"

namespace waywiser {
namespace {

using test::at;
using test::in_box;
using test::in_list;

const Executor& engine() { return *Executors::instance().find("copy-engine"); }

Transfer with(Transfer transfer, const char* name, const char* value) {
    transfer.parameters[name] = value;
    return transfer;
}

TEST(CopyEngine, IsTimedByTheDeviceWhereATransferIsOneCall) {
    const Machine machine = test::three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:0");
    const auto timing = [&](const Transfer& transfer) {
        EXPECT_EQ(unsupported_reason(transfer, machine), std::nullopt) << transfer.text();
        return engine().timing(transfer, machine);
    };
    EXPECT_EQ(timing({{host, gpu, "copy-engine"}, 8, {}}), TimingMode::device);
    EXPECT_EQ(timing(in_box("copy-engine", host, gpu)), TimingMode::device);
    EXPECT_EQ(timing(with(in_box("copy-engine", host, gpu), "call", "2d")), TimingMode::host);
    EXPECT_EQ(timing(in_list("copy-engine", host, gpu)), TimingMode::host);
    EXPECT_EQ(timing(in_box("copy-engine", at("pageable", "numa:0"), gpu)), TimingMode::host);
    const Memory other = at("device", "gpu:1");
    EXPECT_EQ(timing(in_box("copy-engine", gpu, other)), TimingMode::device);
    EXPECT_EQ(timing(with(in_box("copy-engine", gpu, other), "peer", "off")), TimingMode::host);
}

TEST(CopyEngine, OffersWhatMeansSomethingInALayout) {
    const Machine machine = test::three_gpus();
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:0");
    const auto takes = [&](const Transfer& transfer) {
        return !unsupported_reason(transfer, machine);
    };
    EXPECT_TRUE(takes(with({{host, gpu, "copy-engine"}, 8, {}}, "api", "sync")));
    EXPECT_FALSE(takes(with({{host, gpu, "copy-engine"}, 8, {}}, "call", "2d")));
    EXPECT_FALSE(takes(with(in_list("copy-engine", host, gpu), "api", "sync")));
    EXPECT_FALSE(takes(with(in_list("copy-engine", host, gpu), "call", "2d")));
    EXPECT_FALSE(takes(with(in_box("copy-engine", host, gpu), "api", "sync")));
}

TEST(CopyEngine, LeavesWhatMovesByItselfAndFilesToOthers) {
    const Machine machine = test::three_gpus();
    const auto reason = [&](const Memory& from, const Memory& to) {
        return unsupported_reason({{from, to, "copy-engine"}, 8, {}}, machine).value_or("");
    };
    const Memory gpu = at("device", "gpu:0");
    EXPECT_NE(reason(at("managed", "numa:0"), gpu), "");
    EXPECT_NE(reason(gpu, at("managed", "gpu:0")), "");
    EXPECT_EQ(reason(at("file", "file:scratch"), gpu), "the runtime's copies do not reach files");
    EXPECT_EQ(reason(at("mapped", "file:scratch"), gpu), "");
}

class CopyEngineOnFake : public test::OnFake {
protected:
    const Machine machine = test::this_machine();

    std::size_t calls(const Transfer& transfer) const {
        test::Ready ready(transfer, machine);
        ready.bytes.lay({}, 9);
        const auto before = fake::counts().copies;
        ready.caller.run(*ready.execution, ready.bytes.source(), ready.bytes.destination());
        return fake::counts().copies - before;
    }
};

TEST_F(CopyEngineOnFake, CallsOnceForABoxAPlaneOrAPiece) {
    const Memory host = at("pinned", "numa:0");
    for (const Memory& gpu : {at("device", "gpu:0"), at("device", "gpu:1")}) {
        EXPECT_EQ(calls(in_box("copy-engine", host, gpu)), 1u);
        EXPECT_EQ(calls(with(in_box("copy-engine", host, gpu), "call", "2d")), 5u);
        EXPECT_EQ(calls(in_list("copy-engine", host, gpu)), 12u);
    }
    const Memory one = at("device", "gpu:0");
    const Memory other = at("device", "gpu:1");
    EXPECT_EQ(calls(in_box("copy-engine", one, other)), 1u);
    EXPECT_EQ(calls(with(in_box("copy-engine", one, other), "call", "2d")), 5u);
}

TEST_F(CopyEngineOnFake, TakesAnEntryForEachPlaneThatOneCallMoves) {
    const Memory host = at("pinned", "numa:0");
    const Memory gpu = at("device", "gpu:0");
    EXPECT_EQ(test::Ready(in_box("copy-engine", host, gpu), machine).execution->entries(), 5u);
    EXPECT_EQ(test::Ready({{host, gpu, "copy-engine"}, 8, {}, {}}, machine).execution->entries(),
              1u);
}

}  // namespace
}  // namespace waywiser
