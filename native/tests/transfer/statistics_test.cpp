// What a context counts: transfers, bytes, failures and cancellations by method, and waits.
#include "transfer/statistics.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async_call.hpp"
#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/copy.hpp"
#include "transfer/engine.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::transfer {
namespace {

using Stats = waywiser_method_stats;

// Of each method that has moved something, by its name.
std::map<std::string, Stats> counted(const waywiser::Context& context) {
    std::map<std::string, Stats> all;
    for (int i = 1; waywiser_method_name(static_cast<waywiser_method>(i)) != nullptr; ++i) {
        const Stats one = context.stats(static_cast<waywiser_method>(i));
        if (one.transfers != 0) all[waywiser_method_name(static_cast<waywiser_method>(i))] = one;
    }
    return all;
}

std::uint64_t sum_of(const std::map<std::string, Stats>& all, std::uint64_t Stats::* field) {
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                           [&](auto sum, const auto& one) { return sum + one.second.*field; });
}

class CountedTransfers : public test::OnFake {
protected:
    // Expects that `move` counts one transfer of a method, and nothing else.
    template <class Move>
    static void expect_one(waywiser::Context& context, const std::string& method, std::size_t bytes,
                           const Move& move) {
        const auto before = counted(context);
        move();
        auto after = counted(context);
        ASSERT_TRUE(after.contains(method)) << method;
        const Stats known = before.contains(method) ? before.at(method) : Stats{};
        EXPECT_EQ(after[method].transfers - known.transfers, 1U) << method;
        EXPECT_EQ(after[method].bytes - known.bytes, bytes) << method;
        EXPECT_GT(after[method].seconds, known.seconds) << method;
        EXPECT_EQ(after[method].failures, known.failures) << method;
        EXPECT_EQ(sum_of(after, &Stats::transfers), sum_of(before, &Stats::transfers) + 1);
        EXPECT_EQ(sum_of(after, &Stats::bytes), sum_of(before, &Stats::bytes) + bytes);
        const waywiser_stats all = context.stats();
        EXPECT_EQ(all.transfers, sum_of(after, &Stats::transfers));
        EXPECT_EQ(all.bytes, sum_of(after, &Stats::bytes));
        EXPECT_EQ(all.failures, 0U);
        EXPECT_EQ(all.cancellations, 0U);
    }
    static waywiser::ContextOptions without_policy() {
        return {.threads = 4, .pinned_bytes = 16 * kMiB, .policy = "off"};
    }

    const gpu::Stream stream_{0};
};

TEST_F(CountedTransfers, AreOfTheMethodThatMovesThem) {
    waywiser::Context context(without_policy());
    const gpu::DeviceBuffer device(0, 12 * kMiB);
    const gpu::HostBuffer pinned(12 * kMiB, gpu::HostUse::portable, 0);
    std::vector<std::byte> pageable(12 * kMiB, std::byte{1});
    std::vector<std::byte> other(12 * kMiB, std::byte{2});
    EXPECT_EQ(context.stats().transfers, 0U);
    for (const std::size_t bytes : {std::size_t{100}, 9 * kMiB}) {
        expect_one(context, "plain", bytes,
                   [&] { context.copy(device.data(), pinned.data(), bytes, stream_.handle()); });
        expect_one(context, "plain", bytes, [&] {
            (void)context.copy_and_wait(pinned.data(), device.data(), bytes, stream_.handle());
        });
        expect_one(context, "plain", bytes, [&] {
            context.copy_async(pinned.data(), device.data(), bytes, stream_.handle()).result();
        });
    }
    expect_one(context, "chunked", 9 * kMiB, [&] {
        (void)context.copy_and_wait(device.data(), pageable.data(), 9 * kMiB, stream_.handle());
        stream_.synchronize();
        // It ends when a thread has seen that the GPU has.
        while (context.usage().transfers != 0) std::this_thread::yield();
    });
    expect_one(context, "chunked", 9 * kMiB, [&] {
        (void)context.copy_and_wait(pageable.data(), device.data(), 9 * kMiB, stream_.handle());
    });
    expect_one(context, "chunked", 9 * kMiB, [&] {
        context.copy_async(pageable.data(), other.data(), 9 * kMiB, WAYWISER_NO_STREAM).result();
    });
    EXPECT_EQ(context.stats().peak_pinned_bytes, context.usage().pinned_bytes);
    EXPECT_GT(context.stats().peak_pinned_bytes, 0U);
}

TEST_F(CountedTransfers, AreOfAwakeThreadsAndOfRelays) {
    const gpu::DeviceBuffer device(0, 20 * kMiB);
    std::vector<std::byte> pageable(20 * kMiB, std::byte{1});
    waywiser::ContextOptions options = without_policy();
    options.spin_seconds = 1e-3;
    waywiser::Context awake(options);
    expect_one(awake, "ring", 4 * kMiB, [&] {
        (void)awake.copy_and_wait(pageable.data(), device.data(), 4 * kMiB, stream_.handle());
    });
    options = without_policy();
    options.relays = {1};
    waywiser::Context relayed(options);
    expect_one(relayed, "relayed", 20 * kMiB, [&] {
        (void)relayed.copy_and_wait(pageable.data(), device.data(), 20 * kMiB, stream_.handle());
    });
}

// Pieces of a GPU and of pinned memory, with gaps between them on the sides that have some.
struct ListOfPieces {
    ListOfPieces(std::byte* to, const std::byte* from, std::size_t count, std::size_t bytes,
                 std::size_t to_stride, std::size_t from_stride)
        : sizes(count, bytes) {
        for (std::size_t i = 0; i < count; ++i) {
            this->to.push_back(to + i * to_stride);
            this->from.push_back(from + i * from_stride);
        }
    }
    [[nodiscard]] std::size_t bytes() const { return sizes.size() * sizes.front(); }

    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> sizes;
};

TEST_F(CountedTransfers, AreListsBySeveralMethods) {
    const gpu::DeviceBuffer device(0, 16 * kMiB);
    const gpu::HostBuffer pinned(16 * kMiB, gpu::HostUse::portable, 0);
    std::vector<std::byte> pageable(16 * kMiB, std::byte{1});
    waywiser::Context context(without_policy());
    const auto expect_list = [&](waywiser::Context& own, const std::string& method,
                                 const ListOfPieces& list) {
        expect_one(own, method, list.bytes(), [&] {
            (void)own.copy_batch_and_wait(list.to, list.from, list.sizes, stream_.handle());
        });
    };
    const std::size_t few = 256 * kKiB;
    const ListOfPieces long_pieces(device.data(), pinned.data(), 8, few, 2 * few, 2 * few);
    const ListOfPieces short_pieces(device.data(), pinned.data(), 1000, 4 * kKiB, 8 * kKiB,
                                    8 * kKiB);
    const ListOfPieces gathered(pinned.data(), device.data(), 2000, 4 * kKiB, 4 * kKiB, 8 * kKiB);
    const ListOfPieces staged(pageable.data(), device.data(), 1000, 8 * kKiB, 16 * kKiB, 16 * kKiB);
    expect_list(context, "list_batch", long_pieces);
    expect_list(context, "list_kernel", short_pieces);
    expect_list(context, "list_pipeline", gathered);
    expect_list(context, "list_staged", staged);
    waywiser::ContextOptions options = without_policy();
    options.plain = true;
    waywiser::Context plain(options);
    expect_list(plain, "list_copies", short_pieces);
    fake::configure("without=batch");
    expect_list(context, "list_copies", long_pieces);
}

TEST_F(CountedTransfers, AreSnapshots) {
    waywiser::Context context(without_policy());
    const gpu::DeviceBuffer device(0, 12 * kMiB);
    const gpu::HostBuffer pinned(12 * kMiB, gpu::HostUse::portable, 0);
    std::vector<std::byte> pageable(12 * kMiB, std::byte{1});
    for (const auto& [method, to] :
         {std::pair{"snapshot", pinned.data()}, std::pair{"snapshot_staged", pageable.data()}}) {
        const ListOfPieces list(to, device.data(), 3, 3 * kMiB, 4 * kMiB, 4 * kMiB);
        expect_one(context, method, list.bytes(), [&] {
            context.snapshot(list.to, list.from, list.sizes, stream_.handle()).result();
        });
    }
}

TEST_F(CountedTransfers, AreReadsAndWrites) {
    const int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    waywiser::Context context(without_policy());
    std::vector<std::byte> bytes(9 * kMiB, std::byte{1});
    expect_one(context, "write", bytes.size(),
               [&] { context.write(file, 0, bytes.data(), bytes.size(), StreamRef::none()); });
    for (const std::size_t some : {bytes.size(), kMiB / 2}) {  // by threads, by the calling one
        expect_one(context, "read", some, [&] {
            EXPECT_EQ(context.read(file, 0, bytes.data(), some, StreamRef::none()), some);
        });
    }
    // Fewer bytes than asked for, at the end.
    const std::size_t end = bytes.size() - 10;
    expect_one(context, "read", 10, [&] {
        EXPECT_EQ(context.read(file, end, bytes.data(), kMiB, StreamRef::none()), 10U);
    });
    close(file);
}

TEST_F(CountedTransfers, AreNotCopiesOfAGraph) {
    waywiser::Context context(without_policy());
    const gpu::DeviceBuffer device(0, kMiB);
    const gpu::HostBuffer pinned(kMiB, gpu::HostUse::portable, 0);
    const ListOfPieces list(device.data(), pinned.data(), 8, kKiB, 2 * kKiB, 2 * kKiB);
    const gpu::Graph graph(stream_, [&] {
        context.copy(device.data(), pinned.data(), kKiB, stream_.handle());
        context.copy_batch(list.to, list.from, list.sizes, stream_.handle());
    });
    EXPECT_EQ(context.stats().transfers, 0U);
}

TEST_F(CountedTransfers, MayFail) {
    waywiser::Context context(without_policy());
    const gpu::DeviceBuffer device(0, 9 * kMiB);
    const gpu::HostBuffer pinned(9 * kMiB, gpu::HostUse::portable, 0);
    std::vector<std::byte> pageable(9 * kMiB, std::byte{1});
    const ListOfPieces list(device.data(), pinned.data(), 1000, 4 * kKiB, 8 * kKiB, 8 * kKiB);
    const auto expect_failure = [&](waywiser_method method, const char* faults, const auto& move) {
        fake::configure(faults);
        const Stats before = context.stats(method);
        EXPECT_THROW(move(), TransferError);
        const Stats after = context.stats(method);
        EXPECT_EQ(after.transfers, before.transfers + 1) << waywiser_method_name(method);
        EXPECT_EQ(after.failures, before.failures + 1);
        EXPECT_LT(after.bytes, before.bytes + 9 * kMiB);
        EXPECT_EQ(after.cancellations, 0U);
        fake::configure("");
        stream_.synchronize();
    };
    for (const std::size_t bytes : {kMiB, 9 * kMiB}) {
        expect_failure(WAYWISER_METHOD_PLAIN, "fail=copy@1", [&] {
            (void)context.copy_and_wait(device.data(), pinned.data(), bytes, stream_.handle());
        });
    }
    expect_failure(WAYWISER_METHOD_CHUNKED, "fail=copy@3", [&] {
        context.copy_async(pageable.data(), device.data(), 9 * kMiB, stream_.handle()).result();
    });
    expect_failure(WAYWISER_METHOD_LIST_KERNEL, "fail=launch@1", [&] {
        (void)context.copy_batch_and_wait(list.to, list.from, list.sizes, stream_.handle());
    });
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    expect_failure(WAYWISER_METHOD_WRITE, "", [&] {
        context.write_async(full, 0, pageable.data(), kMiB, StreamRef::none()).result();
    });
    close(full);
    EXPECT_EQ(context.stats().failures, 5U);
    // Nothing has started.
    EXPECT_THROW(context.copy(device.data(), device.data() + 1, kMiB, stream_.handle()),
                 TransferError);
    EXPECT_EQ(context.stats().failures, 5U);
}

TEST_F(CountedTransfers, MayBeCancelled) {
    auto engine = Engine::make(test::this_machine(), {.pinned_bytes = 4 * kMiB});
    const gpu::DeviceBuffer device(0, 9 * kMiB);
    std::vector<std::byte> pageable(9 * kMiB, std::byte{1});
    gpu::Gate gate(0);
    gate.close(stream_);
    {
        const Completion waiting = copy_async(engine, device.data(), pageable.data(),
                                              pageable.size(), CallerStream::of(stream_.handle()));
        EXPECT_TRUE(engine->stop());
        EXPECT_THROW(waiting.wait({}), Cancelled);
    }
    gate.open();
    const MethodCounts counts = engine->statistics().of_method(WAYWISER_METHOD_CHUNKED);
    EXPECT_EQ(counts.transfers, 1U);
    EXPECT_EQ(counts.cancellations, 1U);
    EXPECT_EQ(counts.failures, 0U);
    EXPECT_EQ(counts.bytes, 0U);
    EXPECT_EQ(counts.taken.count(), 0) << "it has not started";
    stream_.synchronize();
}

TEST_F(CountedTransfers, AreOfAllThreads) {
    fake::configure("latency=0;event=0;h2d=500;d2h=500");
    waywiser::Context context(without_policy());
    constexpr std::size_t kThreads = 4;
    constexpr std::size_t kRounds = 50;
    const auto work = [&](std::size_t) {
        const gpu::DeviceBuffer device(0, 9 * kMiB);
        std::vector<std::byte> pageable(9 * kMiB, std::byte{1});
        const gpu::Stream stream(0);
        for (std::size_t i = 0; i < kRounds; ++i) {
            (void)context.copy_and_wait(device.data(), pageable.data(), kKiB + i, stream.handle());
        }
        (void)context.copy_and_wait(pageable.data(), device.data(), 9 * kMiB, stream.handle());
    };
    std::vector<std::thread> callers;
    for (std::size_t i = 0; i < kThreads; ++i) callers.emplace_back(work, i);
    for (std::thread& each : callers) each.join();
    auto all = counted(context);
    EXPECT_EQ(all["plain"].transfers, kThreads * kRounds);
    EXPECT_EQ(all["plain"].bytes, kThreads * (kRounds * kKiB + kRounds * (kRounds - 1) / 2));
    EXPECT_EQ(all["chunked"].transfers, kThreads);
    EXPECT_EQ(all["chunked"].bytes, kThreads * 9 * kMiB);
    EXPECT_EQ(all.size(), 2U);
}

// Two jobs share one slot, whose chunk takes the GPU milliseconds.
TEST_F(CountedTransfers, WaitForStagingMemory) {
    fake::configure("d2h=0.05");
    auto engine = Engine::make(test::this_machine(), {.threads = 3, .pinned_bytes = 64 * kKiB});
    constexpr std::size_t kBytes = 512 * kKiB;
    const gpu::DeviceBuffer device(0, kBytes);
    std::vector<std::byte> host(2 * kBytes);
    const auto start = [&](std::size_t at) {
        auto job = std::make_shared<ChunkedCopy>(*engine, Endpoint::host(host.data() + at, false),
                                                 Endpoint::device(device.data(), 0), kBytes,
                                                 CopyShape{.chunk = 64 * kKiB});
        engine->start(job);
        return job;
    };
    const std::vector<std::shared_ptr<Job>> jobs = {start(0), start(kBytes)};
    for (const auto& job : jobs) EXPECT_TRUE(job->wait(Deadline(test::kHangSeconds)));
    const Statistics& statistics = engine->statistics();
    EXPECT_EQ(statistics.of_method(WAYWISER_METHOD_CHUNKED).bytes, 2 * kBytes);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (engine->wake_ups() == 0 && std::chrono::steady_clock::now() < end) {
        EXPECT_TRUE(start(kBytes)->wait(Deadline(test::kHangSeconds)));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(engine->stop());
    EXPECT_GT(statistics.staging_waits(), 0U);
    EXPECT_GT(statistics.staging_wait(), std::chrono::milliseconds(1));
    EXPECT_GT(engine->wake_ups(), 0U);
    EXPECT_EQ(statistics.peak_pinned_bytes(), 64 * kKiB);
}

TEST_F(CountedTransfers, AreAskedForByMethod) {
    waywiser::Context context(without_policy());
    EXPECT_THROW((void)context.stats(WAYWISER_METHOD_NONE), TransferError);
    EXPECT_THROW((void)context.stats(static_cast<waywiser_method>(99)), TransferError);
    EXPECT_THROW((void)context.stats(static_cast<waywiser_method>(-1)), TransferError);
    EXPECT_STREQ(waywiser_method_name(WAYWISER_METHOD_NONE), "none");
    EXPECT_EQ(waywiser_method_name(static_cast<waywiser_method>(99)), nullptr);
    waywiser_stats stats{};
    EXPECT_EQ(waywiser_context_stats(context.get(), &stats), WAYWISER_INVALID) << "no size";
    EXPECT_EQ(waywiser_context_stats(context.get(), nullptr), WAYWISER_INVALID);
    EXPECT_EQ(waywiser_context_stats(nullptr, &stats), WAYWISER_INVALID);
}

}  // namespace
}  // namespace waywiser::transfer
