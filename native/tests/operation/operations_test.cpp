#include "waywiser/operation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "quick_operation.hpp"
#include "waywiser/session.hpp"

namespace waywiser {
namespace {

constexpr StopRule kQuickOperation = test::quick_operation(0.02);

class OperationsTest : public test::OnFake {
protected:
    [[nodiscard]] Place node() const {
        return Place::parse("numa:" + std::to_string(machine.numa.front().index));
    }

    Machine machine = test::this_machine();
    std::unique_ptr<Session> session = std::make_unique<Session>(machine, SessionOptions{});
};

TEST_F(OperationsTest, AreRejectedWithAReasonWhereTheyCannotBe) {
    const auto reason = [&](const char* name, const char* place, const Settings& settings = {}) {
        return unsupported_reason(OperationCall{name, Place::parse(place), settings}, machine)
            .value_or("");
    };
    EXPECT_EQ(reason("levitate", "gpu:0"), "there is no operation 'levitate'");
    EXPECT_EQ(reason("malloc", "gpu:0"), "malloc is not performed at gpu:0");
    EXPECT_EQ(reason("kernel-launch", "gpu:9"), "this machine has no gpu:9");
    EXPECT_NE(reason("malloc", "numa:0", {{"bytes", "7"}}), "");
    EXPECT_NE(reason("malloc", "numa:0", {{"weight", "7"}}), "");
    EXPECT_THROW(session->measure({.operation = OperationCall{"malloc", Place::parse("gpu:0"), {}},
                                   .rule = kQuickOperation},
                                  {}),
                 NotSupported);
}

TEST_F(OperationsTest, ALockedPageNeedsAGpu) {
    Machine without = machine;
    without.gpus.clear();
    const OperationCall call{"host-register", node(), {}};
    EXPECT_NE(unsupported_reason(call, without), std::nullopt);
}

// A node with only memory, or one without CPUs in the cpuset: other CPUs must not replace its own.
TEST_F(OperationsTest, OfANodeArePerformedByItsCpus) {
    Machine lame = machine;
    lame.numa.front().cpus.clear();
    for (const char* name : {"core-latency", "malloc-touch", "host-register"}) {
        EXPECT_EQ(unsupported_reason(OperationCall{name, node(), {}}, machine), std::nullopt)
            << name;
        EXPECT_EQ(unsupported_reason(OperationCall{name, node(), {}}, lame),
                  "no CPU of " + node().text() + " may be used");
    }
}

TEST_F(OperationsTest, MemoryOfAPeerIsOnlyThereWhereItIsReached) {
    const auto reason = [&](const char* name, const Settings& settings) {
        return unsupported_reason(OperationCall{name, Place::parse("gpu:0"), settings}, machine);
    };
    EXPECT_EQ(reason("sm-latency", {{"memory", "gpu:1"}}), std::nullopt);
    EXPECT_EQ(reason("system-atomic", {{"on", "gpu:1"}}), std::nullopt);
    for (GpuPlace& gpu : machine.gpus) gpu.peers.clear();
    EXPECT_NE(reason("sm-latency", {{"memory", "gpu:1"}}), std::nullopt);
    EXPECT_NE(reason("system-atomic", {{"on", "gpu:1"}}), std::nullopt);
}

TEST_F(OperationsTest, LoadsReadWhatTheRuntimeAllocatesOnTheHost) {
    const auto call = [&](const std::string& memory) {
        return OperationCall{
            "sm-latency", Place::parse("gpu:0"), {{"bytes", "2097152"}, {"memory", memory}}};
    };
    const OperationCall allocated = call("host-alloc:" + std::to_string(node().index));
    EXPECT_EQ(unsupported_reason(allocated, machine), std::nullopt);
    EXPECT_GT(
        session->measure({.operation = allocated, .rule = kQuickOperation}, {}).samples.size(), 0);
    EXPECT_NE(unsupported_reason(call("host-alloc:x"), machine), std::nullopt);
    EXPECT_NE(unsupported_reason(call("host-alloc:99"), machine), std::nullopt);
}

TEST_F(OperationsTest, AProcessWithoutPeerAccessStaysSo) {
    session = std::make_unique<Session>(machine, SessionOptions{.peer_access = false});
    const OperationCall local{"sm-latency", Place::parse("gpu:0"), {{"bytes", "16384"}}};
    OperationCall remote = local;
    remote.parameters["memory"] = "gpu:1";
    EXPECT_NO_THROW(session->measure({.operation = local, .rule = kQuickOperation}, {}));
    EXPECT_THROW(session->measure({.operation = remote, .rule = kQuickOperation}, {}),
                 NotSupported);
}

TEST_F(OperationsTest, ErrorsOfTheDeviceAreReported) {
    fake::configure("oom_at=/1");
    EXPECT_THROW(
        session->measure({.operation = OperationCall{"device-malloc", Place::parse("gpu:0"), {}},
                          .rule = kQuickOperation},
                         {}),
        gpu::Error);
    fake::reset();
}

// The fastest setting of each operation: a range of 256 MiB adds nothing about failures.
OperationCall fastest(const Operation& operation, const Place& place) {
    Settings settings;
    if (operation.info().name.ends_with("-latency")) {
        for (const Parameter& parameter : operation.info().parameters) {
            if (parameter.name == "bytes") settings["bytes"] = "16384";
        }
    }
    return {operation.info().name, place, settings};
}

TEST_F(OperationsTest, AnErrorOfAnyCallIsSurfacedAndLeaksNothing) {
    const auto measure = [&](const OperationCall& call) {
        session->measure({.operation = call, .rule = kQuickOperation}, {});
    };
    for (const auto& operation : Operations::instance().entries()) {
        if (operation->place_kinds().front() != Place::Kind::gpu) continue;
        const OperationCall call = fastest(*operation, Place::parse("gpu:1"));
        SCOPED_TRACE(call.text());
        measure(call);  // the streams and the gate stay
        const fake::Live before = fake::live();
        fake::configure("");
        measure(call);
        const fake::Counts counts = fake::counts();
        const std::pair<const char*, std::size_t> points[] = {{"launch", counts.launches},
                                                              {"event", counts.events},
                                                              {"copy", counts.copies},
                                                              {"alloc", counts.allocations},
                                                              {"sync", counts.synchronisations}};
        for (const auto& [point, times] : points) {
            for (std::size_t n = 1; n <= std::min<std::size_t>(times, 3); ++n) {
                SCOPED_TRACE(std::string(point) + "@" + std::to_string(n));
                fake::configure("fail=" + std::string(point) + "@" + std::to_string(n));
                EXPECT_THROW(measure(call), gpu::Error);
                fake::configure("");
                gpu::synchronize_device(call.place.index);  // waits for earlier work
                EXPECT_EQ(fake::live(), before);
            }
        }
        EXPECT_NO_THROW(measure(call)) << "it does not recover";
    }
}

TEST_F(OperationsTest, ALostContextIsReported) {
    for (const char* name : {"launch-synchronize", "sm-latency", "system-atomic"}) {
        fake::configure("lost=launch@2");
        session = std::make_unique<Session>(machine, SessionOptions{});
        const OperationCall call =
            fastest(*Operations::instance().find(name), Place::parse("gpu:0"));
        try {
            session->measure({.operation = call, .rule = kQuickOperation}, {});
            ADD_FAILURE() << name << " did not notice";
        } catch (const gpu::Error& error) {
            EXPECT_EQ(error.kind(), gpu::Failure::sticky) << name;
        }
        session.reset();
    }
    fake::reset();
}

TEST_F(OperationsTest, AddsThatGetLostAreRejected) {
    fake::configure("drop=copy@1");  // the copied result differs from the count
    const OperationCall call{"system-atomic", Place::parse("gpu:0"), {}};
    EXPECT_THROW(session->measure({.operation = call, .rule = kQuickOperation}, {}), NotSupported);
    fake::reset();
}

TEST_F(OperationsTest, PagesAreSentBackBeforeEachWalk) {
    const OperationCall call{"page-fault-latency", Place::parse("gpu:0"), {{"from", "gpu:1"}}};
    fake::configure("");
    const Outcome outcome = session->measure({.operation = call, .rule = kQuickOperation}, {});
    // The shorter walk, the longer one, and the application's single execution.
    EXPECT_GE(fake::counts().copies, 3 * outcome.samples.size());
    EXPECT_GE(outcome.samples.front().repetitions, 16u);
}

TEST_F(OperationsTest, AListOfPagesHasToFitTheGpu) {
    fake::configure("memory=64");
    for (const char* place : {"gpu:0", "numa:0"}) {
        OperationCall call{"page-fault-latency", Place::parse(place), {}};
        if (call.place.kind == Place::Kind::numa) call.place = node();
        EXPECT_THROW(session->measure({.operation = call, .rule = kQuickOperation}, {}),
                     NotSupported);
    }
    fake::reset();
}

TEST_F(OperationsTest, PagesComeFromAnotherPlace) {
    Machine alone = machine;
    alone.gpus.resize(1);
    const auto reason = [&](const Place& place, const Settings& settings) {
        return unsupported_reason(OperationCall{"page-fault-latency", place, settings}, alone)
            .value_or("");
    };
    EXPECT_EQ(reason(Place::parse("gpu:0"), {}), "");
    EXPECT_EQ(reason(node(), {{"from", "gpu:0"}}), "");
    EXPECT_NE(reason(Place::parse("gpu:0"), {{"from", "gpu:0"}}), "");
    EXPECT_NE(reason(node(), {{"from", node().text()}}), "");
    alone.gpus.clear();
    EXPECT_NE(reason(node(), {}), "");
}

TEST_F(OperationsTest, TwoCoresAreNeededToHandALineOver) {
    machine.numa = {{0, {3}}};
    EXPECT_NE(
        unsupported_reason(OperationCall{"core-to-core", Place::parse("numa:0"), {}}, machine),
        std::nullopt);
    machine.numa.push_back({1, {4}});
    EXPECT_EQ(unsupported_reason(
                  OperationCall{"core-to-core", Place::parse("numa:0"), {{"to", "1"}}}, machine),
              std::nullopt);
}

TEST_F(OperationsTest, ACacheAnswersSoonerThanMemory) {
    const auto median_of = [&](const char* bytes) {
        const OperationCall call{"core-latency", node(), {{"bytes", bytes}}};
        StopRule rule = kQuickOperation;
        rule.hard_seconds = 0.2;
        const Outcome outcome = session->measure({.operation = call, .rule = rule}, {});
        std::vector<double> spans;
        for (const Sample& sample : outcome.samples) spans.push_back(sample.span);
        std::ranges::sort(spans);
        return spans[spans.size() / 2];
    };
    EXPECT_LT(3 * median_of("16384"), median_of("16777216"));
}

}  // namespace
}  // namespace waywiser
