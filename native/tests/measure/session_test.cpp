#include "waywiser/session.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "conformance.hpp"
#include "fake/fake.hpp"
#include "gpu/gpu.hpp"
#include "host/clock.hpp"
#include "patience.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Wide enough to be met at once, so that tests are quick on a busy machine.
constexpr StopRule kQuick{.target = 0.5,
                          .wanted = 0.5,
                          .minimum = 10,
                          .slow_minimum = 6,
                          .slow_seconds = 0.020,
                          .maximum = 200,
                          .soft_seconds = 0.01,
                          .hard_seconds = 0.1};

class SessionTest : public ::testing::Test {
protected:
    SessionTest() { fake::reset(); }
    ~SessionTest() override {
        fake::reset();
        session.reset();
        EXPECT_EQ(fake::live(), fake::Live{}) << "something outlived the session";
    }

    static Request request(const char* source, const char* source_place, const char* destination,
                           const char* destination_place, const char* executor, std::size_t bytes,
                           const Settings& parameters = {}) {
        const Path path{{source, Place::parse(source_place), {}},
                        {destination, Place::parse(destination_place), {}},
                        executor};
        return {.transfers = {{path, bytes, parameters}}, .rule = kQuick};
    }
    static Request to_gpu(std::size_t bytes) {
        return request("pinned", node.c_str(), "device", "gpu:0", "copy-engine", bytes);
    }
    static Request from_gpu(std::size_t bytes) {
        return request("device", "gpu:0", "pinned", node.c_str(), "copy-engine", bytes);
    }
    static Request peer(std::size_t bytes, const char* access) {
        return request("device", "gpu:0", "device", "gpu:1", "copy-engine", bytes,
                       {{"peer", access}});
    }

    Outcome measure(const Request& asked) {
        if (!session) session = std::make_unique<Session>(test::this_machine(), options);
        return session->measure(asked, nullptr);
    }

    static const std::string node;
    SessionOptions options{.memory_bytes = 512 * kMiB, .host_timed = {}};
    std::unique_ptr<Session> session;
};

const std::string SessionTest::node =
    Place{Place::Kind::numa, test::this_machine().numa.front().index, {}}.text();

std::optional<gpu::Failure> failure(const std::function<void()>& work) {
    try {
        work();
    } catch (const gpu::Error& error) {
        return error.kind();
    }
    return std::nullopt;
}

void expect_sound(const Outcome& outcome, std::size_t transfers) {
    EXPECT_TRUE(outcome.stop == "converged" || outcome.stop == "budget" || outcome.stop == "limit")
        << outcome.stop;
    EXPECT_GE(outcome.samples.size(), 6u);
    for (const Sample& sample : outcome.samples) {
        ASSERT_EQ(sample.transfers.size(), transfers);
        for (const double seconds : sample.transfers) {
            EXPECT_GT(seconds, 0);
            EXPECT_LE(seconds, sample.span * (1 + 1e-9));
        }
        EXPECT_GT(sample.host, 0);
        EXPECT_GE(sample.skew, 0);
        EXPECT_GE(sample.repetitions, 1u);
        EXPECT_TRUE(std::isfinite(sample.span));
    }
    EXPECT_GT(outcome.setup_seconds, 0);
    EXPECT_GT(outcome.sampling_seconds, 0);
}

TEST_F(SessionTest, TimesPageLockedCopiesByTheDevice) {
    for (const Request& asked : {to_gpu(kMiB), from_gpu(kMiB)}) {
        const Outcome outcome = measure(asked);
        expect_sound(outcome, 1);
        EXPECT_EQ(outcome.mode, TimingMode::device);
        EXPECT_EQ(outcome.gate, "stream-wait-value");
        EXPECT_EQ(outcome.buffers.size(), 2u);
        EXPECT_GE(outcome.buffer_bytes, 2 * kMiB);
    }
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
    expect_sound(outcome, 1);
    EXPECT_GT(outcome.samples.front().repetitions, 1u);
    for (const Sample& sample : outcome.samples) EXPECT_GE(sample.span, 2e-6);  // its latency
}

// The second copy is the first that tells how many are needed; one delayed copy decides nothing.
TEST_F(SessionTest, BatchesSmallTransfersThoughTheFirstWasDelayed) {
    fake::configure("delay=0.002@2;only_bytes=8");
    const Outcome outcome = measure(to_gpu(8));
    EXPECT_GT(outcome.samples.front().repetitions, 1u);
}

TEST_F(SessionTest, TimesTheHostsWorkByTheHost) {
    const std::string n = node;
    for (const Request& asked :
         {request("pageable", n.c_str(), "pageable", n.c_str(), "cpu", 64 << 10),
          request("pageable", n.c_str(), "device", "gpu:0", "copy-engine", kMiB),
          request("device", "gpu:0", "pageable", n.c_str(), "copy-engine", kMiB),
          request("pinned", n.c_str(), "pinned", n.c_str(), "copy-engine", kMiB),
          request("pinned", n.c_str(), "device", "gpu:0", "copy-engine", kMiB,
                  {{"api", "sync"}})}) {
        SCOPED_TRACE(asked.transfers.front().text());
        const Outcome outcome = measure(asked);
        expect_sound(outcome, 1);
        EXPECT_EQ(outcome.mode, TimingMode::host);
    }
}

// A pageable copy returns before its last bytes have arrived: the time has to include them.
TEST_F(SessionTest, HostTimingIncludesTheEndOfTheTransfer) {
    fake::configure("staged=0.05");
    const Outcome outcome =
        measure(request("pageable", node.c_str(), "device", "gpu:0", "copy-engine", kMiB));
    for (const Sample& sample : outcome.samples) EXPECT_GE(sample.span, kMiB / 0.05e9);
}

TEST_F(SessionTest, MeasuresBetweenGpusWithAndWithoutPeerAccess) {
    const Outcome on = measure(peer(kMiB, "on"));
    expect_sound(on, 1);
    EXPECT_EQ(on.mode, TimingMode::device);
    EXPECT_THROW(measure(peer(kMiB, "off")), Refused);
    session.reset();
    fake::reset();
    options.peer_access = false;
    const Outcome off = measure(peer(kMiB, "off"));
    expect_sound(off, 1);
    EXPECT_EQ(off.mode, TimingMode::host);
    EXPECT_THROW(measure(peer(kMiB, "on")), Refused);
}

TEST_F(SessionTest, StartsOpposingAndConcurrentTransfersTogether) {
    Request both = to_gpu(kMiB);
    both.transfers.push_back(from_gpu(kMiB).transfers.front());
    Transfer second_gpu = both.transfers.front();
    second_gpu.path.destination.place.index = 1;
    both.transfers.push_back(second_gpu);
    const Outcome outcome = measure(both);
    expect_sound(outcome, 3);
    EXPECT_EQ(outcome.mode, TimingMode::device);
    EXPECT_EQ(outcome.buffers.size(), 6u);
    both.transfers.push_back(
        request("pageable", node.c_str(), "pageable", node.c_str(), "cpu", kMiB).transfers.front());
    const Outcome mixed = measure(both);
    expect_sound(mixed, 4);
    EXPECT_EQ(mixed.mode, TimingMode::host) << "what mixes modes is timed by the host";
}

TEST_F(SessionTest, TellsTheSideOfPageLockedBuffersWhereItIsAsked) {
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
    const Request asked = to_gpu(64 * kMiB);
    fake::configure("h2d=1000;only_bytes=67108864");
    session = std::make_unique<Session>(test::this_machine(), options);
    std::vector<std::size_t> heard, copies;
    session->measure(asked, nullptr, [&](std::size_t executions) {
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
    Request asked = to_gpu(64 << 10);
    asked.rule.hard_seconds = 0.01;
    asked.rule.slow_minimum = 1;
    asked.rule.minimum = 1;
    session->measure(asked, nullptr, [&](std::size_t executions) { heard.push_back(executions); });
    EXPECT_EQ(heard, (std::vector<std::size_t>{0, 1}));
}

TEST_F(SessionTest, MeasuresTheEmptyInterval) {
    const Request asked{.operation = OperationCall{"empty-interval", Place::parse("gpu:1"), {}},
                        .rule = kQuick};
    const Outcome outcome = measure(asked);
    EXPECT_EQ(outcome.mode, TimingMode::device);
    EXPECT_GE(outcome.samples.size(), 10u);
    for (const Sample& sample : outcome.samples) EXPECT_GT(sample.span, 0);
    EXPECT_THROW(measure({.operation = OperationCall{"empty-interval", Place::parse("gpu:7"), {}},
                          .rule = kQuick}),
                 Refused);
}

TEST_F(SessionTest, KnowsEveryCacheState) {
    for (const Cache cache : {Cache::warm, Cache::dirtied, Cache::flushed}) {
        for (const std::size_t bytes : {std::size_t{64}, kMiB}) {
            Request asked = to_gpu(bytes);
            asked.cache = cache;
            expect_sound(measure(asked), 1);
            asked = request("pageable", node.c_str(), "pageable", node.c_str(), "cpu", bytes);
            asked.cache = cache;
            expect_sound(measure(asked), 1);
        }
    }
}

TEST_F(SessionTest, TellsItsProgress) {
    fake::configure("delay=0.03");
    Request asked = to_gpu(64);
    asked.rule.minimum = 12;
    std::size_t told = 0;
    Session own(test::this_machine(), options);
    const auto outcome = own.measure(asked, [&](const Progress& progress) {
        // The first sample says that sampling has begun, however short it is.
        if (told == 0) {
            EXPECT_EQ(progress.samples, 1u);
        }
        ++told;
        EXPECT_GE(progress.samples, told);
    });
    EXPECT_GT(told, 0u);
    EXPECT_GE(outcome.samples.front().span, 0.03);
}

TEST_F(SessionTest, RefusesWhatItCannotMeasure) {
    EXPECT_THROW(measure({.transfers = {}, .rule = kQuick}), Refused);
    EXPECT_THROW(measure(to_gpu(0)), Refused);
    EXPECT_THROW(measure(request("bubble", "numa:0", "device", "gpu:0", "copy-engine", 8)),
                 Refused);
    EXPECT_THROW(measure(request("device", "gpu:9", "device", "gpu:0", "copy-engine", 8)), Refused);
    EXPECT_THROW(measure(to_gpu(1024 * kMiB)), Refused) << "more than the memory allowed";
    expect_sound(measure(to_gpu(64)), 1);
}

TEST_F(SessionTest, FindsWrongBytes) {
    for (const char* text : {"flip=copy@/1;only_bytes=65536", "drop=copy@/1;only_bytes=65536"}) {
        fake::configure(text);
        EXPECT_THROW(measure(to_gpu(64 << 10)), WrongBytes) << text;
        EXPECT_THROW(
            measure(request("device", "gpu:0", "pageable", node.c_str(), "copy-engine", 64 << 10)),
            WrongBytes)
            << text;
    }
    fake::reset();
    expect_sound(measure(to_gpu(64 << 10)), 1);
}

// Right at first and wrong at last: only the check after the samples can tell.
TEST_F(SessionTest, FindsBytesThatGoWrongLater) {
    fake::configure("drop=copy@2+;only_bytes=65536");
    EXPECT_THROW(measure(to_gpu(64 << 10)), WrongBytes);
}

TEST_F(SessionTest, IsDelayedAndNotLostByAnOpeningThatWasLost) {
    options.watchdog_seconds = 0.1;
    fake::configure("gate=lost");
    test::Call call([&] { EXPECT_EQ(measure(to_gpu(64 << 10)).mode, TimingMode::device); });
    EXPECT_TRUE(call.returns());
}

TEST_F(SessionTest, TellsThatAPathBlocksBehindTheGate) {
    options.watchdog_seconds = 0.1;
    fake::configure("block=copy@/1;only_bytes=65536");
    test::Call call([&] { EXPECT_THROW(measure(to_gpu(64 << 10)), BlocksBehindGate); });
    ASSERT_TRUE(call.returns());
    call.get();
    session.reset();
    options.host_timed = {to_gpu(64 << 10).transfers.front()};
    const Outcome outcome = measure(to_gpu(64 << 10));
    expect_sound(outcome, 1);
    EXPECT_EQ(outcome.mode, TimingMode::host) << "reclassified";
}

TEST_F(SessionTest, AnErrorAtAnyCopyCostsOneWorkload) {
    const Request asked = to_gpu(64 << 10);
    expect_sound(measure(asked), 1);
    for (const int n : {1, 2, 5, 12}) {  // what is slow makes no more than that
        SCOPED_TRACE(n);
        const std::string where = "copy@" + std::to_string(n) + ";only_bytes=65536";
        fake::configure("fail=" + where);
        EXPECT_EQ(failure([&] { measure(asked); }), gpu::Failure::other);
        expect_sound(measure(asked), 1);
    }
}

// Copies already under way when a call fails must have ended before anybody gets their buffers.
TEST_F(SessionTest, WhatWasEnqueuedBeforeAnErrorEndsFirst) {
    fake::configure("fail=copy@20;delay=0.05@10+;only_bytes=32768");
    const Request asked = to_gpu(32 << 10);
    EXPECT_EQ(failure([&] { measure(asked); }), gpu::Failure::other);
    const double before = host::now();
    gpu::synchronize_device(0);
    EXPECT_LT(host::now() - before, 0.02) << "copies were still under way";
}

TEST_F(SessionTest, AStickyErrorIsSurfacedWhereverItHappens) {
    const Request asked = to_gpu(64 << 10);
    for (const char* kind : {"sticky=", "lost="}) {
        for (const char* point :
             {"copy@1", "copy@30", "launch@1", "launch@2", "event@1", "event@20", "fill@1"}) {
            SCOPED_TRACE(std::string(kind) + point);
            fake::configure(std::string(kind) + point);
            EXPECT_EQ(failure([&] { measure(asked); }), gpu::Failure::sticky);
            EXPECT_EQ(failure([&] { measure(asked); }), gpu::Failure::sticky) << "a second time";
            session.reset();
            EXPECT_EQ(fake::live(), fake::Live{});
        }
    }
}

TEST_F(SessionTest, OutOfMemoryAtAnyAllocationLeaksNothing) {
    const Request asked = to_gpu(64 << 10);
    measure(asked);
    const std::size_t allocations = fake::counts().allocations;
    ASSERT_GE(allocations, 3u);
    for (std::size_t n = 1; n <= allocations; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        session.reset();
        fake::configure("oom_at=" + std::to_string(n));
        EXPECT_EQ(failure([&] { measure(asked); }), gpu::Failure::out_of_memory);
        expect_sound(measure(asked), 1);
    }
    session.reset();
    EXPECT_EQ(fake::live(), fake::Live{});
}

TEST_F(SessionTest, AHangIsTheSupervisorsToEnd) {
    fake::configure("hang=copy@3;only_bytes=65536");
    test::Call call([&] { measure(to_gpu(64 << 10)); });
    EXPECT_TRUE(call.blocks());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_TRUE(call.blocks());
    fake::reset();
    EXPECT_TRUE(call.returns());
}

}  // namespace
}  // namespace waywiser
