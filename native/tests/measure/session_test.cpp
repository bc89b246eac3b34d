#include "measure/session_test.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async_call.hpp"
#include "gpu/gpu.hpp"
#include "host/clock.hpp"

namespace waywiser {
namespace {

TEST_F(SessionTest, TimesPageLockedCopiesByTheDevice) {
    for (const Request& requested : {to_gpu(kMiB), from_gpu(kMiB)}) {
        const Outcome outcome = measure(requested);
        expect_valid(outcome, 1);
        EXPECT_EQ(outcome.mode, TimingMode::device);
        EXPECT_EQ(outcome.gate, "stream-wait-value");
        EXPECT_EQ(outcome.buffers.size(), 2u);
        EXPECT_GE(outcome.buffer_bytes, 2 * kMiB);
    }
}

// A context takes half a GiB of a GPU that others may use, or creating it may fail there.
TEST_F(SessionTest, LeavesGpusAloneThatAreNotOfItsMachine) {
    Machine machine = test::this_machine();
    machine.gpus.erase(machine.gpus.begin());
    const std::string place = "gpu:1";
    ASSERT_EQ(machine.gpus.front().index, 1);
    const auto call = [](const char* name, const std::string& at) {
        return Request{.operation = OperationCall{name, Place::parse(at), {}}, .rule = kQuick};
    };
    const std::vector<Request> requested{
        request("pinned", node.c_str(), "device", "gpu:1", "copy-engine", 4096),
        request("write-combined", node.c_str(), "device", "gpu:1", "sm", 4096),
        request("pageable", node.c_str(), "device", "gpu:1", "copy-engine", 4096),
        request("managed", node.c_str(), "managed", "gpu:1", "prefetch", 4096),
        request("pinned", node.c_str(), "pinned", node.c_str(), "copy-engine", 4096),
        call("host-register", node),
        call("managed-malloc", place),
        call("graph-launch", place),
        call("page-fault-latency", node)};
    for (const Request& each : requested) {
        fake::reset();
        options.sides = true;
        Session(machine, options).measure(each, nullptr);
        EXPECT_EQ(fake::contexts(), std::set<int>{1});
    }
}

// The cost of locking depends on the number of GPUs that the pages are locked for: lock them on
// all, independent of earlier measurements.
TEST_F(SessionTest, LocksPagesForEveryGpuOfTheMachine) {
    measure({.operation = OperationCall{"host-register", Place::parse(node), {}}, .rule = kQuick});
    EXPECT_EQ(fake::contexts(), (std::set<int>{0, 1}));
}

TEST_F(SessionTest, SeesTheSimulatedRate) {
    fake::configure("h2d=0.5");
    const Outcome outcome = measure(to_gpu(4 * kMiB));
    const double least = 4.0 * kMiB / 0.5e9;
    for (const Sample& sample : outcome.samples) {
        EXPECT_GE(sample.span, least);
        EXPECT_GE(sample.host, least);
    }
}

TEST_F(SessionTest, BatchesSmallTransfers) {
    const Outcome outcome = measure(to_gpu(8));
    expect_valid(outcome, 1);
    EXPECT_GT(outcome.samples.front().repetitions, 1u);
    for (const Sample& sample : outcome.samples) EXPECT_GE(sample.span, 2e-6);  // its latency
}

// Only from the second copy on the number of repetitions can be estimated; one delayed copy has no
// effect.
TEST_F(SessionTest, BatchesSmallTransfersThoughTheFirstWasDelayed) {
    fake::configure("delay=0.002@2;only_bytes=8");
    const Outcome outcome = measure(to_gpu(8));
    EXPECT_GT(outcome.samples.front().repetitions, 1u);
}

TEST_F(SessionTest, TimesTheHostsWorkByTheHost) {
    const std::string n = node;
    for (const Request& requested :
         {request("pageable", n.c_str(), "pageable", n.c_str(), "cpu", 64 << 10),
          request("pageable", n.c_str(), "device", "gpu:0", "copy-engine", kMiB),
          request("device", "gpu:0", "pageable", n.c_str(), "copy-engine", kMiB),
          request("pinned", n.c_str(), "pinned", n.c_str(), "copy-engine", kMiB),
          request("pinned", n.c_str(), "device", "gpu:0", "copy-engine", kMiB,
                  {{"api", "sync"}})}) {
        SCOPED_TRACE(requested.transfers.front().text());
        const Outcome outcome = measure(requested);
        expect_valid(outcome, 1);
        EXPECT_EQ(outcome.mode, TimingMode::host);
    }
}

// A pageable copy returns before its last bytes have arrived: the time must include them.
TEST_F(SessionTest, HostTimingIncludesTheEndOfTheTransfer) {
    fake::configure("staged=0.05");
    const Outcome outcome =
        measure(request("pageable", node.c_str(), "device", "gpu:0", "copy-engine", kMiB));
    for (const Sample& sample : outcome.samples) EXPECT_GE(sample.span, kMiB / 0.05e9);
}

TEST_F(SessionTest, MeasuresBetweenGpusWithAndWithoutPeerAccess) {
    const Outcome on = measure(peer(kMiB, "on"));
    expect_valid(on, 1);
    EXPECT_EQ(on.mode, TimingMode::device);
    EXPECT_THROW(measure(peer(kMiB, "off")), NotSupported);
    session.reset();
    fake::reset();
    options.peer_access = false;
    const Outcome off = measure(peer(kMiB, "off"));
    expect_valid(off, 1);
    EXPECT_EQ(off.mode, TimingMode::host);
    EXPECT_THROW(measure(peer(kMiB, "on")), NotSupported);
}

TEST_F(SessionTest, StartsOpposingAndConcurrentTransfersTogether) {
    Request both = to_gpu(kMiB);
    both.transfers.push_back(from_gpu(kMiB).transfers.front());
    Transfer second_gpu = both.transfers.front();
    second_gpu.path.destination.place.index = 1;
    both.transfers.push_back(second_gpu);
    const Outcome outcome = measure(both);
    expect_valid(outcome, 3);
    EXPECT_EQ(outcome.mode, TimingMode::device);
    EXPECT_EQ(outcome.buffers.size(), 6u);
    both.transfers.push_back(
        request("pageable", node.c_str(), "pageable", node.c_str(), "cpu", kMiB).transfers.front());
    const Outcome mixed = measure(both);
    expect_valid(mixed, 4);
    EXPECT_EQ(mixed.mode, TimingMode::host) << "what mixes modes is timed by the host";
}

TEST_F(SessionTest, MeasuresTheSideOfPageLockedBuffersOnRequest) {
    EXPECT_TRUE(measure(to_gpu(4096)).buffers[0].gpu_seconds.empty());
    session.reset();
    options.sides = true;
    const Outcome outcome = measure(to_gpu(4096));
    EXPECT_EQ(outcome.buffers[0].gpu_seconds.size(), 2u);
    EXPECT_TRUE(outcome.buffers[1].gpu_seconds.empty()) << "memory of a GPU";
    const Outcome again = measure(from_gpu(4096));
    EXPECT_EQ(again.buffers[1].gpu_seconds, outcome.buffers[0].gpu_seconds) << "the same buffer";
}

TEST_F(SessionTest, LetsExecutionsBeWatched) {
    options.memory_bytes = 512 * kMiB;
    const Request requested = to_gpu(64 * kMiB);
    fake::configure("h2d=1000;only_bytes=67108864");
    session = std::make_unique<Session>(test::this_machine(), options);
    std::vector<std::size_t> heard, copies;
    session->measure(requested, nullptr, [&](std::size_t executions) {
        heard.push_back(executions);
        copies.push_back(fake::counts().copies);
    });
    ASSERT_EQ(heard.size(), 2u);
    EXPECT_EQ(heard[0], 0u);
    EXPECT_GE(heard[1], 1u);
    EXPECT_LE(heard[1], 4u);
    EXPECT_EQ(copies[1] - copies[0], heard[1]);
}

TEST_F(SessionTest, LetsSlowExecutionsBeWatchedOnce) {
    fake::configure("h2d=0.0005");
    session = std::make_unique<Session>(test::this_machine(), options);
    std::vector<std::size_t> heard;
    Request requested = to_gpu(64 << 10);
    requested.rule.hard_seconds = 0.01;
    requested.rule.slow_minimum = 1;
    requested.rule.minimum = 1;
    session->measure(requested, nullptr,
                     [&](std::size_t executions) { heard.push_back(executions); });
    EXPECT_EQ(heard, (std::vector<std::size_t>{0, 1}));
}

TEST_F(SessionTest, MeasuresTheEmptyInterval) {
    const Request requested{.operation = OperationCall{"empty-interval", Place::parse("gpu:1"), {}},
                            .rule = kQuick};
    const Outcome outcome = measure(requested);
    EXPECT_EQ(outcome.mode, TimingMode::device);
    EXPECT_GE(outcome.samples.size(), 10u);
    for (const Sample& sample : outcome.samples) EXPECT_GT(sample.span, 0);
    EXPECT_THROW(measure({.operation = OperationCall{"empty-interval", Place::parse("gpu:7"), {}},
                          .rule = kQuick}),
                 NotSupported);
}

TEST_F(SessionTest, KnowsEveryCacheState) {
    for (const Cache cache : {Cache::warm, Cache::dirtied, Cache::flushed}) {
        for (const std::size_t bytes : {std::size_t{64}, kMiB}) {
            Request requested = to_gpu(bytes);
            requested.cache = cache;
            expect_valid(measure(requested), 1);
            requested = request("pageable", node.c_str(), "pageable", node.c_str(), "cpu", bytes);
            requested.cache = cache;
            expect_valid(measure(requested), 1);
        }
    }
}

TEST_F(SessionTest, ReportsItsProgress) {
    fake::configure("delay=0.03");
    Request requested = to_gpu(64);
    requested.rule.minimum = 12;
    std::size_t reports = 0;
    Session own(test::this_machine(), options);
    const auto outcome = own.measure(requested, [&](const Progress& progress) {
        // The first sample reports that sampling has begun, even if it is short.
        if (reports == 0) {
            EXPECT_EQ(progress.samples, 1u);
        }
        ++reports;
        EXPECT_GE(progress.samples, reports);
    });
    EXPECT_GT(reports, 0u);
    EXPECT_GE(outcome.samples.front().span, 0.03);
}

}  // namespace
}  // namespace waywiser
