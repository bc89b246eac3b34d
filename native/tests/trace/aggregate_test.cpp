#include "trace/aggregate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace waywiser::trace {
namespace {

Activity copy_at(std::uint64_t start, std::uint64_t end, std::uint32_t correlation = 0,
                 std::uint64_t bytes = 64) {
    Activity activity;
    activity.direction = Direction::ToDevice;
    activity.from.kind = Kind::Pinned;
    activity.to = {.kind = Kind::Device, .gpu = 0};
    activity.start = start;
    activity.end = end;
    activity.correlation = correlation;
    activity.bytes = bytes;
    return activity;
}

Activity kernel_at(std::uint64_t start, std::uint64_t end, bool collective = false) {
    Activity activity;
    activity.what = collective ? Activity::What::Collective : Activity::What::Kernel;
    activity.start = start;
    activity.end = end;
    return activity;
}

Call call_of(std::uint32_t correlation, SiteId site, std::uint64_t begin = 1000,
             std::uint64_t end = 1100) {
    Call call;
    call.correlations[0] = correlation;
    call.site = site;
    call.begin = begin;
    call.end = end;
    return call;
}

const Group& only_group(const Aggregator& sums) {
    EXPECT_EQ(sums.groups().size(), 1u);
    return sums.groups().front();
}

TEST(TraceAggregate, ExposedIsWhatNoKernelOfTheGpuCovers) {
    Aggregator sums;
    sums.add(copy_at(1000, 2000));
    sums.add(kernel_at(1200, 1400));
    sums.add(kernel_at(1300, 1500));
    sums.add(kernel_at(1900, 3000, true));
    Activity elsewhere = kernel_at(1000, 2000);
    elsewhere.gpu = 1;
    sums.add(elsewhere);
    sums.settle_all();
    EXPECT_EQ(only_group(sums).exposed_ns, 600u);
    EXPECT_EQ(only_group(sums).during_collective_ns, 100u);
    const Sweep::Totals& totals = sums.gpus().at(0).sweep.totals();
    EXPECT_EQ(totals.kernel, 300u + 1100u);
    EXPECT_EQ(totals.collective, 1100u);
    EXPECT_EQ(totals.copy, 1000u);
    EXPECT_EQ(totals.exposed, 600u);
}

TEST(TraceAggregate, AloneIsWithoutCopiesOfOtherGroups) {
    Aggregator sums;
    sums.add(call_of(1, 5));
    sums.add(call_of(2, 6));
    sums.add(call_of(3, 5));
    sums.add(copy_at(1000, 2000, 1));
    sums.add(copy_at(1500, 2500, 2));
    sums.add(copy_at(1000, 1200, 3));  // of the first group too
    sums.settle_all();
    ASSERT_EQ(sums.groups().size(), 2u);
    EXPECT_EQ(sums.groups()[0].exposed_ns, 1000u);
    EXPECT_EQ(sums.groups()[0].alone_ns, 500u);
    EXPECT_EQ(sums.groups()[1].alone_ns, 500u);
    EXPECT_EQ(sums.gpus().at(0).sweep.totals().exposed, 1500u);
}

TEST(TraceAggregate, LostIsAlsoTheTimeInWhichTheProgramWaitsForItsCopy) {
    Aggregator sums;
    sums.add(call_of(1, 5, 500, 2600));
    sums.add(copy_at(1000, 2000, 1));
    sums.add(kernel_at(2200, 2400));
    sums.settle_all();
    EXPECT_EQ(only_group(sums).exposed_ns, 1000u);
    EXPECT_EQ(only_group(sums).alone_ns, 1000u);
    EXPECT_EQ(only_group(sums).lost_ns, 1700u + 200u);
    EXPECT_EQ(sums.gpus().at(0).sweep.totals().lost, 1900u);
    EXPECT_EQ(sums.gpus().at(0).sweep.totals().exposed, 1000u);
}

TEST(TraceAggregate, ASleepCountsForTheCallsOfItsPeriodAlone) {
    for (const bool late : {false, true}) {  // records come before the sleep, or after it
        Aggregator sums;
        const auto add_copies = [&] {
            for (std::uint32_t i = 1; i <= 5; ++i)
                sums.add(copy_at(1000ull * i, 1000ull * i + 500, i));
            sums.settle_all();
        };
        for (std::uint32_t i = 1; i <= 5; ++i) {
            Call call = call_of(i, 5);
            call.period = i <= 3 ? 11 : 12;
            sums.add(call);
        }
        if (!late) add_copies();
        Call sleep;
        sleep.kind = CallKind::PeriodEnd;
        sleep.period = 11;
        sleep.slept = true;
        sums.add(sleep);
        sleep.period = 12;  // of a thread that ended
        sleep.slept = false;
        sums.add(sleep);
        if (late) add_copies();
        EXPECT_EQ(only_group(sums).traced_calls, 5u);
        EXPECT_EQ(only_group(sums).slept_after, 3u);
        EXPECT_EQ(only_group(sums).sleeps, 1u);
    }
}

TEST(TraceAggregate, ThreadsThatEndedLeaveRoomForOthers) {
    constexpr std::uint32_t kThreads = 40'000;
    Aggregator sums;
    for (std::uint32_t i = 1; i <= kThreads; ++i) {
        for (const bool slept : {false, true}) {
            Call call = call_of(2 * i + (slept ? 1 : 0), 5);
            call.period = call.correlations[0];
            sums.add(call);
            const std::uint64_t start = 10ull * call.correlations[0];
            sums.add(copy_at(start, start + 5, call.correlations[0]));
            sums.settle_all();
            Call end;
            end.kind = CallKind::PeriodEnd;
            end.period = call.period;
            end.slept = slept;
            sums.add(end);
        }
    }
    EXPECT_EQ(only_group(sums).slept_after, kThreads);
    EXPECT_EQ(only_group(sums).sleeps, kThreads);
}

TEST(TraceAggregate, ACallForPageableMemoryWaitsWhateverItsName) {
    for (const Kind kind : {Kind::Pageable, Kind::Pinned}) {
        Aggregator sums;
        Call call = call_of(1, 5, 500, 2600);
        call.asynchronous = true;
        sums.add(call);
        Activity copy = copy_at(1000, 2000, 1);
        copy.from.kind = kind;
        sums.add(copy);
        sums.settle_all();
        EXPECT_EQ(only_group(sums).lost_ns, kind == Kind::Pageable ? 2100u : 1000u);
        EXPECT_EQ(only_group(sums).exposed_ns, 1000u);
    }
}

TEST(TraceAggregate, NothingIsLostInAWaitWhileAnotherCopyRuns) {
    Aggregator sums;
    Call other = call_of(2, 6, 50, 60);
    other.asynchronous = true;
    sums.add(call_of(1, 5, 0, 1000));
    sums.add(other);
    sums.add(copy_at(100, 500, 2));
    sums.add(copy_at(800, 900, 1));
    sums.settle_all();
    ASSERT_EQ(sums.groups().size(), 2u);
    for (const Group& group : sums.groups()) {
        EXPECT_EQ(group.lost_ns, group.key.site == 5 ? 600u : 400u);
        EXPECT_EQ(group.exposed_ns, group.key.site == 5 ? 100u : 400u);
    }
    EXPECT_EQ(sums.gpus().at(0).sweep.totals().lost, 1000u);
}

TEST(TraceAggregate, ACallThatDoesNotWaitLosesItsCopyAlone) {
    for (const bool waits : {false, true}) {
        Aggregator sums;
        Call call = call_of(1, 5, 100, 200);
        call.asynchronous = true;
        sums.add(call);
        if (waits) {
            Call wait = call_of(2, 5, 250, 1500);
            wait.kind = CallKind::Wait;
            wait.waited_for = 1;
            sums.add(wait);
        }
        sums.add(copy_at(400, 900, 1));
        sums.settle_all();
        EXPECT_EQ(only_group(sums).lost_ns, waits ? 1400u : 500u);
    }
}

TEST(TraceAggregate, SetsOfMemoryAreNoCopies) {
    Aggregator sums;
    Activity set = copy_at(1000, 2000);
    set.operation = Operation::Set;
    sums.add(set);
    sums.settle_all();
    EXPECT_EQ(only_group(sums).exposed_ns, 1000u);
    EXPECT_EQ(sums.gpus().at(0).sweep.totals().copy, 0u);
}

// Nanosecond by nanosecond.
std::vector<std::uint64_t> count_slowly(const std::vector<Activity>& all, std::uint64_t end) {
    std::vector<std::uint64_t> sums(4);  // exposed, kernel, copy, during collectives
    for (std::uint64_t time = 0; time < end; ++time) {
        bool copy = false, kernel = false, collective = false;
        for (const Activity& each : all) {
            if (time < each.start || time >= each.end) continue;
            copy |= each.what == Activity::What::Transfer;
            kernel |= each.what != Activity::What::Transfer;
            collective |= each.what == Activity::What::Collective;
        }
        sums[0] += copy && !kernel ? 1 : 0;
        sums[1] += kernel ? 1 : 0;
        sums[2] += copy ? 1 : 0;
        sums[3] += copy && collective ? 1 : 0;
    }
    return sums;
}

TEST(TraceAggregate, SumsAreTheSameInWhateverStepsItSettles) {
    std::mt19937 random(7);
    const auto draw = [&](std::uint64_t most) { return std::uint64_t{random()} % most; };
    for (int round = 0; round < 200; ++round) {
        std::vector<Activity> all;
        for (int i = 0; i < 12; ++i) {
            const std::uint64_t start = 1 + draw(200), end = start + 1 + draw(60);
            all.push_back(draw(2) == 0 ? copy_at(start, end) : kernel_at(start, end, draw(3) == 0));
        }
        const std::vector<std::uint64_t> expected = count_slowly(all, 300);
        Aggregator sums;
        std::uint64_t settled = 0;
        // An activity is known before what is older than its start is settled, and in any order.
        std::shuffle(all.begin(), all.end(), random);
        for (std::uint64_t time = 0; time < 300; time += 1 + draw(70)) {
            for (const Activity& each : all) {
                if (each.start >= settled && each.start < time) sums.add(each);
            }
            settled = time;
            sums.settle(time);
        }
        for (const Activity& each : all) {
            if (each.start >= settled) sums.add(each);
        }
        sums.settle_all();
        const Sweep::Totals& totals = sums.gpus().at(0).sweep.totals();
        EXPECT_EQ(totals.exposed, expected[0]) << round;
        EXPECT_EQ(totals.kernel, expected[1]) << round;
        EXPECT_EQ(totals.copy, expected[2]) << round;
        if (!sums.groups().empty()) {
            EXPECT_EQ(sums.groups()[0].exposed_ns, expected[0]) << round;
            EXPECT_EQ(sums.groups()[0].during_collective_ns, expected[3]) << round;
        }
    }
}

TEST(TraceAggregate, ALateCopyIsComparedWithTheKernelsOfTheLastSeconds) {
    Aggregator sums;
    sums.add(kernel_at(1000, 2000));
    sums.add(kernel_at(3000, 4000));
    sums.settle(10'000);
    sums.add(copy_at(1500, 3500));
    sums.settle_all();
    EXPECT_EQ(only_group(sums).exposed_ns, 1000u);
    EXPECT_EQ(only_group(sums).copies, 1u);
}

TEST(TraceAggregate, ALateKernelCountsOnce) {
    Aggregator sums;
    sums.add(kernel_at(1000, 2000));
    sums.settle(10'000);
    sums.add(kernel_at(1500, 2500));
    sums.settle_all();
    EXPECT_EQ(sums.gpus().at(0).sweep.totals().kernel, 1500u);
    EXPECT_EQ(sums.gpus().at(0).kernels, 2u);
}

TEST(TraceAggregate, CopiesFindTheirCallByEachOfItsNumbers) {
    Aggregator sums;
    Call call = call_of(10, 3);
    call.correlations[1] = 11;
    call.asynchronous = true;
    sums.add(call);
    sums.add(copy_at(5000, 6000, 10));
    sums.add(copy_at(6000, 7000, 11));
    sums.settle_all();
    const Group& group = only_group(sums);
    EXPECT_EQ(group.key.site, 3u);
    EXPECT_EQ(group.copies, 2u);
    EXPECT_EQ(group.calls, 1u);
    EXPECT_EQ(group.asynchronous, 1u);
    EXPECT_EQ(group.call_ns, 100u);
}

TEST(TraceAggregate, ABatchIsOneCallAndSeveralCopies) {
    Aggregator sums;
    sums.add(call_of(10, 3));
    Activity batch = copy_at(5000, 6000, 10, 3000);
    batch.count = 30;
    sums.add(batch);
    sums.settle_all();
    EXPECT_EQ(only_group(sums).copies, 30u);
    EXPECT_EQ(only_group(sums).calls, 1u);
    EXPECT_EQ(only_group(sums).most_bytes, 100u);
    EXPECT_EQ(only_group(sums).key.bytes_log2, 6);
}

TEST(TraceAggregate, AWaitCountsForItsCopyBeforeAndAfterThatHasSettled) {
    for (const bool settled_first : {false, true}) {
        Aggregator sums;
        sums.add(call_of(10, 3));
        sums.add(copy_at(5000, 6000, 10));
        if (settled_first) sums.settle(7000);
        Call wait = call_of(11, 4, 2000, 2700);
        wait.kind = CallKind::Wait;
        wait.waited_for = 10;
        sums.add(wait);
        sums.settle_all();
        EXPECT_EQ(only_group(sums).waited, 1u);
        EXPECT_EQ(only_group(sums).wait_ns, 700u);
        EXPECT_EQ(sums.waits().at(4).nanoseconds, 700u);
    }
}

TEST(TraceAggregate, AFailedCallOfAnAllocationIsTheOnlyOneThatIsNotThere) {
    Aggregator sums;
    Call pin = call_of(10, 3);
    pin.kind = CallKind::PinAllocate;
    pin.bytes = 4096;
    sums.add(pin);
    sums.add(pin);
    const CallSums& found = sums.memory_calls().at({3, CallKind::PinAllocate});
    EXPECT_EQ(found.calls, 2u);
    EXPECT_EQ(found.bytes, 8192u);
    EXPECT_EQ(found.nanoseconds, 200u);
}

TEST(TraceAggregate, ChunksBelongToTheTransferOfTheLibrary) {
    Aggregator sums;
    LibraryCopy copy{.id = 9, .bytes = 1000};
    copy.key.site = 8;
    copy.key.operation = Operation::LibraryCopy;
    sums.add(copy);
    Call chunk = call_of(10, 3);
    chunk.library_transfer = 9;
    sums.add(chunk);
    sums.add(copy_at(5000, 6000, 10));
    copy.ended = 7000;
    copy.call_nanoseconds = 50;
    sums.add(copy);
    sums.settle_all();
    const Group& group = only_group(sums);
    EXPECT_EQ(group.key.site, 8u);
    EXPECT_EQ(group.copies, 1u);
    EXPECT_EQ(group.bytes, 1000u);
    EXPECT_EQ(group.device_ns, 1000u);
    EXPECT_EQ(group.call_ns, 50u);
}

TEST(TraceAggregate, TheNumberOfGroupsIsBounded) {
    Aggregator sums;
    for (std::uint32_t i = 1; i <= 30'000; ++i) {
        sums.add(call_of(i, i));
        sums.add(copy_at(1000 + i, 1001 + i, i));
    }
    sums.settle_all();
    EXPECT_LE(sums.groups().size(), 20'001u);
    std::uint64_t copies = 0;
    for (const Group& group : sums.groups()) copies += group.copies;
    EXPECT_EQ(copies, 30'000u);
}

TEST(TraceAggregate, CallsAreForgottenWhenTheirCopiesCanNoLongerCome) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    CallTable calls;
    calls.add(call_of(1, 1, 0, kSecond));
    calls.add(call_of(2, 1, 0, kSecond));
    calls.find(1)->used = true;
    calls.expire(7 * kSecond);
    EXPECT_EQ(calls.find(1), nullptr);
    EXPECT_NE(calls.find(2), nullptr);
    calls.expire(62 * kSecond);
    EXPECT_EQ(calls.size(), 0u);
}

TEST(TraceAggregate, TheTimelineIsTheSecondWithTheMostExposedTime) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    Aggregator sums;
    sums.add(copy_at(10 * kSecond + 1, 10 * kSecond + 100));
    sums.add(copy_at(12 * kSecond - 50, 12 * kSecond + 500));
    sums.add(kernel_at(12 * kSecond + 600, 12 * kSecond + 700));
    sums.add(copy_at(14 * kSecond, 14 * kSecond + 900));
    sums.add(kernel_at(14 * kSecond, 14 * kSecond + 800));
    for (std::uint64_t second = 10; second < 16; ++second) sums.settle(second * kSecond);
    sums.settle_all();
    const Timeline::Second* const worst = sums.timeline().worst();
    ASSERT_NE(worst, nullptr);
    EXPECT_EQ(worst->start, 12 * kSecond);
    EXPECT_EQ(worst->exposed, 500u);
    EXPECT_TRUE(worst->complete);
    ASSERT_EQ(worst->events.size(), 1u);  // the copy began in the second before
    EXPECT_EQ(worst->events[0].kind, TimelineEvent::Kernel);
}

TEST(TraceAggregate, TheTimelineIsBounded) {
    Timeline timeline;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        timeline.add({TimelineEvent::Copy, 0, 0, 1'000'000'000 + i, 1'000'000'001 + i, 1, 0});
        timeline.add({TimelineEvent::Kernel, 0, 0, 1'000'000'000 + i, 1'000'000'001 + i, 0, 0});
    }
    timeline.settle(~0ull);
    ASSERT_NE(timeline.worst(), nullptr);
    EXPECT_EQ(timeline.worst()->events.size(), 8000u);
    EXPECT_FALSE(timeline.worst()->complete);
}

TEST(TraceAggregate, NamesOfKernelsAreKeptOnce) {
    Aggregator sums;
    const std::uint32_t first = sums.kernel_name("one");
    EXPECT_EQ(sums.kernel_name(std::string("one").c_str()), first);
    EXPECT_NE(sums.kernel_name("two"), first);
    EXPECT_EQ(sums.kernel_names()[sums.kernel_name(nullptr)], "");
    for (int i = 0; i < 10'000; ++i) sums.kernel_name(("kernel" + std::to_string(i)).c_str());
    EXPECT_LE(sums.kernel_names().size(), 4100u);
    EXPECT_TRUE(Aggregator::is_collective(
        sums.kernel_names()[sums.kernel_name("ncclDevKernel_AllGather")]));
}

}  // namespace
}  // namespace waywiser::trace
