// A session after failures: it reports them, and loses nothing.
#include <functional>
#include <optional>

#include "async_call.hpp"
#include "failure.hpp"
#include "gpu/gpu.hpp"
#include "host/clock.hpp"
#include "measure/session_test.hpp"

namespace waywiser {
namespace {

using test::failure;

TEST_F(SessionTest, RejectsWhatItCannotMeasure) {
    EXPECT_THROW(measure({.transfers = {}, .rule = kQuick}), NotSupported);
    EXPECT_THROW(measure(to_gpu(0)), NotSupported);
    EXPECT_THROW(measure(request("bubble", "numa:0", "device", "gpu:0", "copy-engine", 8)),
                 NotSupported);
    EXPECT_THROW(measure(request("device", "gpu:9", "device", "gpu:0", "copy-engine", 8)),
                 NotSupported);
    EXPECT_THROW(measure(to_gpu(1024 * kMiB)), NotSupported) << "more than the memory allowed";
    expect_valid(measure(to_gpu(64)), 1);
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
    expect_valid(measure(to_gpu(64 << 10)), 1);
}

// Right at first and wrong at last: only the check after the samples can detect it.
TEST_F(SessionTest, FindsBytesThatGoWrongLater) {
    fake::configure("drop=copy@2+;only_bytes=65536");
    EXPECT_THROW(measure(to_gpu(64 << 10)), WrongBytes);
}

TEST_F(SessionTest, IsDelayedAndNotLostByAnOpeningThatWasLost) {
    options.watchdog_seconds = 0.1;
    fake::configure("gate=lost");
    test::AsyncCall call([&] { EXPECT_EQ(measure(to_gpu(64 << 10)).mode, TimingMode::device); });
    EXPECT_TRUE(call.returns());
}

TEST_F(SessionTest, ReportsThatAPathBlocksBehindTheGate) {
    options.watchdog_seconds = 0.1;
    fake::configure("block=copy@/1;only_bytes=65536");
    test::AsyncCall call([&] { EXPECT_THROW(measure(to_gpu(64 << 10)), BlocksBehindGate); });
    ASSERT_TRUE(call.returns());
    call.get();
    session.reset();
    options.host_timed = {to_gpu(64 << 10).transfers.front()};
    const Outcome outcome = measure(to_gpu(64 << 10));
    expect_valid(outcome, 1);
    EXPECT_EQ(outcome.mode, TimingMode::host) << "reclassified";
}

// A minimum of samples on any machine, so that the call that is to fail is made.
Request of_many_samples(Request requested) {
    requested.rule.minimum = requested.rule.slow_minimum = 30;
    return requested;
}

TEST_F(SessionTest, AnErrorAtAnyCopyCostsOneWorkload) {
    const Request requested = of_many_samples(to_gpu(64 << 10));
    expect_valid(measure(requested), 1);
    for (const int n : {1, 2, 5, 30}) {
        SCOPED_TRACE(n);
        const std::string where = "copy@" + std::to_string(n) + ";only_bytes=65536";
        fake::configure("fail=" + where);
        EXPECT_EQ(failure([&] { measure(requested); }), gpu::Failure::other);
        expect_valid(measure(requested), 1);
    }
}

// Copies in flight when a call fails must have ended before their buffers are reused.
TEST_F(SessionTest, WhatWasEnqueuedBeforeAnErrorEndsFirst) {
    fake::configure("fail=copy@12;delay=0.5@5+;only_bytes=32768");
    const Request requested = of_many_samples(to_gpu(32 << 10));
    EXPECT_EQ(failure([&] { measure(requested); }), gpu::Failure::other);
    const double before = host::now();
    gpu::synchronize_device(0);
    EXPECT_LT(host::now() - before, 0.25) << "copies were still in flight";
}

TEST_F(SessionTest, AStickyErrorIsSurfacedWhereverItHappens) {
    const Request requested = of_many_samples(to_gpu(64 << 10));
    for (const char* kind : {"sticky=", "lost="}) {
        for (const char* point :
             {"copy@1", "copy@30", "launch@1", "launch@2", "event@1", "event@20", "fill@1"}) {
            SCOPED_TRACE(std::string(kind) + point);
            fake::configure(std::string(kind) + point);
            EXPECT_EQ(failure([&] { measure(requested); }), gpu::Failure::sticky);
            EXPECT_EQ(failure([&] { measure(requested); }), gpu::Failure::sticky)
                << "a second time";
            session.reset();
            EXPECT_EQ(fake::live(), fake::Live{});
        }
    }
}

TEST_F(SessionTest, OutOfMemoryAtAnyAllocationLeaksNothing) {
    const Request requested = to_gpu(64 << 10);
    measure(requested);
    const std::size_t allocations = fake::counts().allocations;
    ASSERT_GE(allocations, 3u);
    for (std::size_t n = 1; n <= allocations; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        session.reset();
        fake::configure("oom_at=" + std::to_string(n) + "+");
        EXPECT_EQ(failure([&] { measure(requested); }), gpu::Failure::out_of_memory);
        fake::reset();
        expect_valid(measure(requested), 1);
    }
    session.reset();
    EXPECT_EQ(fake::live(), fake::Live{});
}

TEST_F(SessionTest, AHangIsTheSupervisorsToEnd) {
    fake::configure("hang=copy@3;only_bytes=65536");
    test::AsyncCall call([&] { measure(to_gpu(64 << 10)); });
    EXPECT_TRUE(call.blocks());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_TRUE(call.blocks());
    fake::reset();
    EXPECT_TRUE(call.returns());
}

}  // namespace
}  // namespace waywiser
