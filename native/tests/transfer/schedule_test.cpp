// Which threads a schedule wakes.
#include "transfer/schedule.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "async_call.hpp"
#include "conformance.hpp"
#include "ring_parts.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/job.hpp"
#include "transfer/job_end.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {
namespace {

using Clock = std::chrono::steady_clock;

template <class Condition>
bool comes_true(const Condition& condition) {
    constexpr Polling kEachMillisecond{.spin = std::chrono::nanoseconds(0),
                                       .pause = std::chrono::nanoseconds(0),
                                       .sleep = std::chrono::milliseconds(1)};
    return poll(condition, Deadline(test::kHangSeconds), kEachMillisecond);
}

// The thread that has found the work has not joined it yet.
TEST(Schedules, WakeNoThreadInPlaceOfOneThatHasFoundTheWork) {
    std::atomic<bool> ends{false};
    CopyThreads threads(test::this_machine(), {}, 1, [&](int) { ends.wait(false); });
    threads.spawn(1);
    ASSERT_EQ(threads.size(), 1U);
    Schedule schedule(threads, 4, 1, 3600);
    const auto job = std::make_shared<Job>(64, Division{.slot = 64, .piece = 64}, CpuWork::all);
    ASSERT_TRUE(schedule.add(job));
    WorkerState first;
    const auto joined = schedule.join(first, nullptr);
    ASSERT_EQ(joined.job, job);
    EXPECT_FALSE(schedule.leave(first, joined, Step::nothing, schedule.view(first).generation));

    std::thread asleep([&] {
        WorkerState self;
        self.last_work = Clock::now() - std::chrono::hours(2);
        schedule.sleep(self, schedule.view(self).generation, nullptr, Deadline());
        schedule.stop_working(self);
    });
    ASSERT_TRUE(comes_true([&] { return schedule.sleeping() == 1; }));
    std::atomic<bool> found{false};
    std::atomic<bool> joins{false};
    std::thread awake([&] {
        WorkerState self;
        self.last_work = Clock::now();
        schedule.sleep(self, schedule.view(self).generation, nullptr, Deadline());
        found = true;
        joins.wait(false);
        const auto own = schedule.join(self, nullptr);
        EXPECT_EQ(own.job, job);
        EXPECT_EQ(schedule.spinning(), 0U);
        EXPECT_FALSE(schedule.leave(self, own, Step::nothing, schedule.view(self).generation));
    });
    ASSERT_TRUE(comes_true([&] { return schedule.spinning() == 1; }));

    // A wake-up changes the generation once more.
    for (const bool has_found : {false, true}) {
        EXPECT_EQ(found, has_found);
        const std::uint64_t before = schedule.view(first).generation;
        schedule.wake_some();
        EXPECT_EQ(schedule.view(first).generation, before + 1);
        EXPECT_EQ(schedule.spinning(), 1U);
        ASSERT_TRUE(comes_true([&] { return found.load(); }));
    }
    EXPECT_EQ(schedule.sleeping(), 1U);
    joins = true;
    joins.notify_all();
    awake.join();
    schedule.wake_all();
    asleep.join();
    schedule.remove(*job);
    ends = true;
    ends.notify_all();
    EXPECT_TRUE(threads.join([] { return true; }));
}

class ClosedSchedules : public RingParts {};

// It is ended by who closes the schedule, and a thread may look for work before that.
TEST_F(ClosedSchedules, GiveNoThreadAJobThatWaitedForItsStart) {
    const gpu::Stream stream(0);
    gpu::Gate gate(0);
    gate.close(stream);
    const auto start = std::make_shared<gpu::Event>(0, gpu::EventUse::ordering);
    start->record(stream);
    const auto job = std::make_shared<Job>(64, Division{.slot = 64, .piece = 64}, CpuWork::all);
    job->open(resources, start);
    ASSERT_TRUE(schedule.add(job));
    WorkerState self;
    EXPECT_EQ(schedule.join(self, nullptr).job, nullptr);
    const auto why = std::make_exception_ptr(Cancelled("the schedule is closed"));
    const auto ending = schedule.close(why);
    ASSERT_EQ(ending.size(), 1U);
    EXPECT_EQ(schedule.join(self, nullptr).job, nullptr);
    EXPECT_TRUE(job->failed());
    complete(schedule, *job);
    EXPECT_THROW(job->rethrow(), Cancelled);
    gate.open();
}

}  // namespace
}  // namespace waywiser::transfer
