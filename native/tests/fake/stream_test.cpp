#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"

namespace waywiser {
namespace {

using gpu::Event;
using gpu::Gate;
using gpu::Stream;
using test::AsyncCall;

class FakeStream : public test::OnFake {};

// Records the order in which kernels ran.
struct Note {
    std::vector<int>* order;
    std::mutex* guard;
    int what;
    void operator()(gpu::Thread) const {
        const std::lock_guard lock(*guard);
        order->push_back(what);
    }
};

struct Raise {
    std::atomic<bool>* flag;
    void operator()(gpu::Thread) const { *flag = true; }
};

TEST_F(FakeStream, RunsInOrderAndBehindTheCallersBack) {
    std::vector<int> order;
    std::mutex guard;
    Stream stream(0);
    Gate gate{0};
    gate.close(stream);
    for (int i = 0; i < 5; ++i) gpu::launch(stream, {}, Note{&order, &guard, i});
    EXPECT_FALSE(stream.done());
    EXPECT_TRUE(order.empty());
    gate.open();
    stream.synchronize();
    EXPECT_TRUE(stream.done());
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(FakeStream, LaunchesEveryThreadOnce) {
    struct Count {
        unsigned long long* sum;
        WAYWISER_ON_GPU void operator()(gpu::Thread t) const {
            for (std::size_t i = t.index; i < 1000; i += t.count) gpu::add(sum, i);
        }
    };
    unsigned long long sum = 0;
    Stream stream(1);
    gpu::launch(stream, {.blocks = 3, .threads = 7}, Count{&sum});
    stream.synchronize();
    EXPECT_EQ(sum, 999u * 1000u / 2);
}

TEST_F(FakeStream, TouchesKeepValuesAndSystemAddsReturnThePreviousOne) {
    struct Body {
        std::byte* bytes;
        unsigned long long* sum;
        unsigned long long* before;
        WAYWISER_ON_GPU void operator()(gpu::Thread t) const {
            gpu::touch(bytes + t.index);
            before[t.index] = gpu::add_system(sum, 5);
        }
    };
    alignas(4) std::array<std::byte, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
    const auto same = bytes;
    unsigned long long sum = 1;
    std::array<unsigned long long, 8> before{};
    Stream stream(0);
    gpu::launch(stream, {.blocks = 2, .threads = 4}, Body{bytes.data(), &sum, before.data()});
    stream.synchronize();
    EXPECT_EQ(bytes, same);
    EXPECT_EQ(sum, 41u);
    EXPECT_EQ(before[7], 36u);
}

TEST_F(FakeStream, StreamsOfOneDeviceRunAtOnce) {
    Stream held(0);
    Stream free(0);
    Gate gate{0};
    gate.close(held);
    std::atomic<bool> ran{false};
    gpu::launch(free, {}, Raise{&ran});
    free.synchronize();
    EXPECT_TRUE(ran);
    gate.open();
    held.synchronize();
}

TEST_F(FakeStream, WaitsForAnEventOfAnotherDevice) {
    std::atomic<bool> ran{false};
    Stream first(0);
    Stream second(1);
    Event reached(0, gpu::EventUse::ordering);
    Gate gate{0};
    gate.close(first);
    reached.record(first);
    gpu::wait(second, reached);
    gpu::launch(second, {}, Raise{&ran});
    std::this_thread::sleep_for(test::kMoment);
    EXPECT_FALSE(ran);
    EXPECT_FALSE(reached.done());
    gate.open();
    second.synchronize();
    EXPECT_TRUE(ran);
    EXPECT_TRUE(reached.done());
}

TEST_F(FakeStream, AWaitIsForTheRecordingThatWasThere) {
    Stream first(0);
    Stream second(0);
    Event event(0);
    event.record(first);
    gpu::wait(second, event);
    Gate gate{0};
    gate.close(first);
    event.record(first);  // a later recording does not block those who wait for the earlier one
    EXPECT_TRUE(AsyncCall([&] { second.synchronize(); }).returns());
    EXPECT_FALSE(event.done());
    gate.open();
    event.synchronize();
}

TEST_F(FakeStream, IsDoneAtOnceWithItsLastEvent) {
    Stream stream(0);
    Event event(0);
    for (int i = 0; i < 500; ++i) {
        event.record(stream);
        while (!event.done()) std::this_thread::yield();
        ASSERT_TRUE(stream.done()) << i;
        event.record(stream);
        while (!stream.done()) std::this_thread::yield();
        ASSERT_TRUE(event.done()) << i;
    }
}

TEST_F(FakeStream, AnEventNeverRecordedHoldsNobody) {
    Stream stream(0);
    Event event(0);
    gpu::wait(stream, event);
    event.synchronize();
    EXPECT_TRUE(event.done());
    stream.synchronize();
}

TEST_F(FakeStream, EventsTimeWhatLiesBetween) {
    fake::configure("delay=0.03");
    Stream stream(0);
    gpu::DeviceBuffer buffer(0, 64);
    gpu::HostBuffer host(64, gpu::HostUse::portable, 0);
    Event start(0);
    Event stop(0);
    start.record(stream);
    gpu::copy_async(buffer.data(), host.data(), 64, stream);
    stop.record(stream);
    stop.synchronize();
    EXPECT_GE(gpu::seconds_between(start, stop), 0.03);
    EXPECT_LT(gpu::seconds_between(start, stop), 1.0);
}

TEST_F(FakeStream, TimesOnlyCompletedTimingEventsOfOneDevice) {
    Stream stream(0);
    Stream other_stream(1);
    Event start(0), stop(0), elsewhere(1), untimed(0, gpu::EventUse::ordering), unrecorded(0);
    start.record(stream);
    elsewhere.record(other_stream);
    untimed.record(stream);
    stream.synchronize();
    other_stream.synchronize();
    EXPECT_THROW(gpu::seconds_between(start, elsewhere), gpu::Error);
    EXPECT_THROW(gpu::seconds_between(start, untimed), gpu::Error);
    EXPECT_THROW(gpu::seconds_between(start, unrecorded), gpu::Error);
    EXPECT_THROW(elsewhere.record(stream), gpu::Error);
    Gate gate{0};
    gate.close(stream);
    stop.record(stream);
    EXPECT_THROW(gpu::seconds_between(start, stop), gpu::Error);
    gate.open();
    stop.synchronize();
    EXPECT_GE(gpu::seconds_between(start, stop), 0);
}

TEST_F(FakeStream, WorkOfADestroyedStreamStillRuns) {
    std::atomic<bool> ran{false};
    Gate gate{0};
    Event last(0);
    {
        Stream stream(0);
        gate.close(stream);
        gpu::launch(stream, {}, Raise{&ran});
        last.record(stream);
    }
    EXPECT_FALSE(ran);
    gate.open();
    last.synchronize();
    EXPECT_TRUE(ran);
}

TEST_F(FakeStream, SynchronisingADeviceWaitsForAllItsStreams) {
    Stream held(1);
    Gate gate{0};
    gate.close(held);
    EXPECT_TRUE(AsyncCall([] { gpu::synchronize_device(0); }).returns());
    AsyncCall waiting([] { gpu::synchronize_device(1); });
    EXPECT_TRUE(waiting.blocks());
    gate.open();
    EXPECT_TRUE(waiting.returns());
}

TEST_F(FakeStream, RejectsADeviceThatIsNotThere) {
    EXPECT_THROW(Stream(2), gpu::Error);
    EXPECT_THROW(Stream(-1), gpu::Error);
    EXPECT_THROW(Event(2), gpu::Error);
    EXPECT_THROW(gpu::DeviceBuffer(2, 64), gpu::Error);
}

}  // namespace
}  // namespace waywiser
