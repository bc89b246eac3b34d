#include "trace/call_log.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "trace/clock.hpp"

namespace waywiser::trace {
namespace {

const ApiCall& runtime_call(std::uint32_t id) { return *find_call(cupti::kRuntimeApi, id); }
const ApiCall& driver_call(std::uint32_t id) { return *find_call(cupti::kDriverApi, id); }

constexpr std::uint32_t kCopyAsync = 41, kDriverCopyAsync = 277, kWait = 131, kHostAlloc = 27;

cupti::CallData data_of(std::uint32_t correlation, const void* parameters = nullptr,
                        const int* result = nullptr) {
    cupti::CallData data{};
    data.correlation = correlation;
    data.parameters = parameters;
    data.returned = result;
    return data;
}

void call(CallLog& log, std::uint32_t id, std::uint32_t correlation) {
    log.enter(cupti::kRuntimeApi, runtime_call(id), data_of(correlation));
    log.leave(runtime_call(id), data_of(correlation));
}

TEST(TraceCalls, AreThoseOfTheRuntimeWithWhatTheyCallInside) {
    Sites sites;
    CallLog log(sites);
    log.enter(cupti::kRuntimeApi, runtime_call(kCopyAsync), data_of(7));
    log.enter(cupti::kDriverApi, driver_call(kDriverCopyAsync), data_of(8));
    log.leave(driver_call(kDriverCopyAsync), data_of(8));
    log.leave(runtime_call(kCopyAsync), data_of(7));
    const std::vector<Call> calls = log.take();
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].correlations[0], 7u);
    EXPECT_EQ(calls[0].correlations[1], 8u);
    EXPECT_TRUE(calls[0].asynchronous);
    EXPECT_NE(calls[0].site, kUnknownSite);
    EXPECT_TRUE(log.take().empty());
}

TEST(TraceCalls, ThatFailAreNotKept) {
    Sites sites;
    CallLog log(sites);
    const int failed = 2;
    log.enter(cupti::kRuntimeApi, runtime_call(kCopyAsync), data_of(7));
    log.leave(runtime_call(kCopyAsync), data_of(7, nullptr, &failed));
    EXPECT_TRUE(log.take().empty());
}

TEST(TraceCalls, ThatBeganBeforeTheTracerAreNotKept) {
    Sites sites;
    CallLog log(sites);
    log.leave(runtime_call(kCopyAsync), data_of(7));
    EXPECT_TRUE(log.take().empty());
    call(log, kCopyAsync, 9);
    EXPECT_EQ(log.take().size(), 1u);
}

TEST(TraceCalls, AWaitThatFollowsACopyIsForIt) {
    Sites sites;
    CallLog log(sites);
    call(log, kCopyAsync, 7);
    call(log, kWait, 8);
    call(log, kWait, 9);  // the copy has been waited for
    std::vector<Call> calls = log.take();
    // A busy machine may take the CPU from the thread between two calls, as a sleep would.
    std::erase_if(calls, [](const Call& each) { return each.kind == CallKind::PeriodEnd; });
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(calls[1].waited_for, 7u);
    EXPECT_EQ(calls[2].waited_for, 0u);
}

TEST(TraceCalls, SizesOfPinnedMemoryAreInTheParameters) {
    Sites sites;
    CallLog log(sites);
    const struct {
        void* data;
        std::uint64_t bytes;
    } parameters{nullptr, 4096};
    log.enter(cupti::kRuntimeApi, runtime_call(kHostAlloc), data_of(7, &parameters));
    log.leave(runtime_call(kHostAlloc), data_of(7, &parameters));
    EXPECT_EQ(log.take().at(0).bytes, 4096u);
}

constexpr std::uint64_t kMs = 1'000'000;

// A busy period that the test's clock ends by a sleep: the thread runs next to nothing meanwhile.
TEST(TraceCalls, ASleepOfTheThreadEndsABusyPeriod) {
    BusyPeriods periods;
    const std::uint64_t first = periods.number();
    std::uint64_t now = monotonic_now();
    EXPECT_EQ(periods.enter(now), 0u);
    periods.leave(now, now + 10'000);
    EXPECT_EQ(periods.enter(now + 20'000), 0u);  // at once
    periods.leave(now + 20'000, now + 10 * kMs);
    now += 1000 * kMs;
    EXPECT_EQ(periods.enter(now), first);
    EXPECT_NE(periods.number(), first);
    BusyPeriods other;
    EXPECT_NE(other.number(), periods.number());
}

TEST(TraceCalls, AShortSleepAfterLongWorkEndsNone) {
    BusyPeriods periods;
    const std::uint64_t now = monotonic_now();
    EXPECT_EQ(periods.enter(now), 0u);
    periods.leave(now, now + 10'000 * kMs);
    EXPECT_EQ(periods.enter(now + 10'050 * kMs), 0u);  // 0.5 %
}

TEST(TraceCalls, WorkAndLongCallsAreNoSleep) {
    BusyPeriods periods;
    std::uint64_t now = monotonic_now();
    periods.enter(now);
    periods.leave(now, now + 1000);
    // On a busy machine the thread may lose its CPU: then it did not run. So the time is its own.
    for (const std::uint64_t began = thread_cpu_now(); thread_cpu_now() < began + 20 * kMs;) {
    }
    EXPECT_EQ(periods.enter(now + 20 * kMs), 0u);
    periods.leave(now + 20 * kMs, now + 500 * kMs);  // sleeps in the call
    EXPECT_EQ(periods.enter(now + 500 * kMs + 1000), 0u);
}

TEST(TraceCalls, SleepsInShortCallsAreNoSleepBetweenThem) {
    BusyPeriods periods;
    std::uint64_t now = monotonic_now();
    periods.enter(now);
    for (int i = 0; i < 400; ++i) {  // each waits for 90 us, and uses next to no CPU
        periods.leave(now, now + 90'000);
        now += 91'000;
        EXPECT_EQ(periods.enter(now), 0u);
    }
    periods.leave(now, now + 1000);
    // Then 0.15 ms of work: less than 2 % of the time before, whatever ran.
    EXPECT_EQ(periods.enter(now + 151'000), 0u);
}

TEST(TraceCalls, OfAThreadThatEndedThePeriodEnds) {
    Sites sites;
    CallLog log(sites);
    std::thread([&] { call(log, kCopyAsync, 7); }).join();
    const std::vector<Call> calls = log.take();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[1].kind, CallKind::PeriodEnd);
    EXPECT_FALSE(calls[1].slept);
    EXPECT_EQ(calls[1].period, calls[0].period);
    EXPECT_TRUE(log.take().empty());
}

TEST(TraceCalls, ASleepIsReportedBeforeTheCallThatFollows) {
    Sites sites;
    CallLog log(sites);
    call(log, kCopyAsync, 7);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    call(log, kCopyAsync, 9);
    const std::vector<Call> calls = log.take();
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(calls[1].kind, CallKind::PeriodEnd);
    EXPECT_TRUE(calls[1].slept);
    EXPECT_EQ(calls[1].period, calls[0].period);
    EXPECT_NE(calls[2].period, calls[0].period);
}

TEST(TraceCalls, OfManyThreadsAreAllTaken) {
    constexpr std::uint32_t kThreads = 8, kCalls = 2000;
    Sites sites;
    CallLog log(sites);
    std::atomic<std::uint32_t> number{0};
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            for (std::uint32_t each = 0; each < kCalls; ++each) call(log, kCopyAsync, ++number);
        });
    }
    std::vector<bool> seen(kThreads * kCalls + 1);
    std::size_t taken = 0;
    const auto take = [&] {
        for (const Call& each : log.take()) {
            if (each.kind == CallKind::PeriodEnd) continue;
            EXPECT_FALSE(seen[each.correlations[0]]);
            seen[each.correlations[0]] = true;
            ++taken;
        }
    };
    while (number.load() < kThreads * kCalls) take();
    for (std::thread& thread : threads) thread.join();
    take();
    EXPECT_EQ(taken, kThreads * kCalls);
}

TEST(TraceCalls, AddressesOfALineRepeat) {
    RecentAddresses addresses;
    std::vector<char> memory(1 << 20);
    EXPECT_FALSE(addresses.use(5, memory.data()));
    EXPECT_TRUE(addresses.use(5, memory.data()));
    EXPECT_FALSE(addresses.use(6, memory.data())) << "of another line";
    EXPECT_FALSE(addresses.use(5, memory.data() + 4096));
    // Two buffers in turn repeat; new ones each time do not.
    int repeated = 0;
    for (std::size_t i = 0; i < 100; ++i)
        repeated += addresses.use(7, &memory[i % 2 * 65536]) ? 1 : 0;
    EXPECT_EQ(repeated, 98);
    repeated = 0;
    for (std::size_t i = 0; i < 1000; ++i) repeated += addresses.use(8, &memory[i * 1024]) ? 1 : 0;
    EXPECT_EQ(repeated, 0);
}

TEST(TraceCalls, AddressesOfManyBuffersRepeat) {
    // Large buffers are whole powers of two apart, and a model has hundreds of tensors.
    for (const std::uint64_t apart : {4096ull, 1ull << 20, 16ull << 20, (1ull << 30) + 4096}) {
        for (const std::uint64_t buffers : {2ull, 64ull, 300ull}) {
            RecentAddresses addresses;
            constexpr std::uint64_t kRounds = 10;
            std::uint64_t repeated = 0;
            for (std::uint64_t i = 0; i < kRounds * buffers; ++i) {
                const std::uint64_t value = (1ull << 40) + i % buffers * apart;
                repeated += addresses.use(5, reinterpret_cast<const void*>(value)) ? 1 : 0;
            }
            EXPECT_GT(static_cast<double>(repeated), 0.6 * static_cast<double>(kRounds * buffers))
                << buffers << " buffers, " << apart << " bytes apart";
        }
    }
}

TEST(TraceCalls, SomePagesAreLookedAt) {
    Sites sites;
    ThreadLog log(sites);
    int sampled = 0;
    for (int i = 0; i < 8 + 64; ++i) sampled += CallLog::is_sampled(log, 5) ? 1 : 0;
    EXPECT_EQ(sampled, 8 + 2);
    EXPECT_TRUE(CallLog::is_sampled(log, 6));
}

TEST(TraceCalls, ACopyIsOfTheOpenTransferThatItsAddressesLieIn) {
    OpenTransfers open;
    EXPECT_EQ(open.find({}), 0u);
    std::vector<char> one(100), two(100);
    const auto address = [](const std::vector<char>& bytes) {
        return reinterpret_cast<std::uintptr_t>(bytes.data());
    };
    open.begin({{.id = 1, .bytes = 100}, address(one), 0});
    open.begin({{.id = 2, .bytes = 100}, 0, address(two)});
    EXPECT_EQ(open.find({.to = one.data() + 99}), 1u);
    EXPECT_EQ(open.find({.to = nullptr, .from = two.data() + 5}), 2u);
    EXPECT_EQ(open.find({}), 1u);  // the one that began first
    EXPECT_TRUE(open.end(1));
    EXPECT_FALSE(open.end(1));
    EXPECT_EQ(open.find({}), 2u);
}

TEST(TraceCalls, AreKnownByTheirNumbers) {
    EXPECT_EQ(find_call(cupti::kRuntimeApi, 13), nullptr);
    EXPECT_EQ(find_call(cupti::kRuntimeApi, 100'000), nullptr);
    EXPECT_EQ(find_call(7, kCopyAsync), nullptr);
    for (const ApiCall& each : driver_calls()) {
        EXPECT_EQ(find_call(cupti::kDriverApi, each.id), &each);
    }
    for (const ApiCall& each : runtime_calls()) {
        EXPECT_EQ(find_call(cupti::kRuntimeApi, each.id), &each);
    }
    const struct {
        const void* to;
        const void* from;
        std::uint64_t bytes;
        std::int32_t kind;
    } up{&up, nullptr, 10, 1}, down{&up, nullptr, 10, 2}, within{&up, nullptr, 10, 3};
    EXPECT_EQ(host_range(runtime_call(kCopyAsync), &up).data, nullptr);
    EXPECT_EQ(host_range(runtime_call(kCopyAsync), &down).data, &up);
    EXPECT_EQ(host_range(runtime_call(kCopyAsync), &within).bytes, 0u);
}

}  // namespace
}  // namespace waywiser::trace
