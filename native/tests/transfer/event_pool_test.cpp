// The events that an engine keeps for reuse.
#include "transfer/event_pool.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "fake/fixture.hpp"

namespace waywiser::transfer {
namespace {

using EventPools = test::OnFake;

TEST_F(EventPools, ReuseWhatWasGivenBackOnTheSameDevice) {
    fake::configure("devices=2");
    EventPool pool;
    std::shared_ptr<gpu::Event> event = pool.take(0);
    const void* const handle = event->handle();
    event.reset();
    EXPECT_NE(pool.take(1)->handle(), handle);
    const std::shared_ptr<gpu::Event> again = pool.take(0);
    EXPECT_EQ(again->handle(), handle);
    EXPECT_NE(pool.take(0)->handle(), handle);  // it is taken
}

// A thread that is about to make a stream wait for it must not wait for what is recorded later.
TEST_F(EventPools, DoNotReuseWhatSomebodyStillHas) {
    EventPool pool;
    std::shared_ptr<gpu::Event> event = pool.take(0);
    const std::shared_ptr<const gpu::Event> still = event;
    event.reset();
    EXPECT_NE(pool.take(0)->handle(), still->handle());
}

// An engine ends before handles of its transfers.
TEST_F(EventPools, MayEndBeforeTheirEvents) {
    std::shared_ptr<gpu::Event> event;
    {
        const EventPool pool;
        event = pool.take(0);
    }
    const gpu::Stream stream(0);
    event->record(stream);
    event->synchronize();
}

TEST_F(EventPools, ServeManyThreads) {
    EventPool pool;
    std::vector<std::jthread> threads;
    for (int n = 0; n < 4; ++n) {
        threads.emplace_back([&pool] {
            const gpu::Stream stream(0);
            for (int i = 0; i < 50; ++i) {
                std::shared_ptr<gpu::Event> event = pool.take(0);
                event->record(stream);
                event->synchronize();
                EXPECT_TRUE(event->done());
            }
        });
    }
}

TEST_F(EventPools, ReportAFailureToMakeOne) {
    EventPool pool;
    fake::configure("fail=call@1");
    EXPECT_THROW(static_cast<void>(pool.take(0)), gpu::Error);
    EXPECT_NO_THROW(static_cast<void>(pool.take(0)));
}

}  // namespace
}  // namespace waywiser::transfer
