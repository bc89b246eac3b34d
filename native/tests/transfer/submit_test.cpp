// Transfers of several operations, plans, cancelling, queries, callbacks, waits for any of several
// transfers, and tracers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kLayerBlock = 4 * kKiB;
constexpr std::size_t kLayerBlocks = 256;
constexpr std::size_t kArray = kLayerBlock * kLayerBlocks;
constexpr std::size_t kLayers = 8;
constexpr double kEndSeconds = 60;

class SubmitFile {
public:
    SubmitFile() : number_(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {}
    ~SubmitFile() { close(number_); }
    SubmitFile(const SubmitFile&) = delete;
    SubmitFile& operator=(const SubmitFile&) = delete;
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] std::vector<std::byte> bytes(std::size_t count) const {
        std::vector<std::byte> all(count);
        EXPECT_EQ(pread(number_, all.data(), count, 0), static_cast<ssize_t>(count));
        return all;
    }

private:
    int number_;
};

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
    std::vector<std::byte> all(count);
    std::mt19937 random(seed);
    for (std::byte& one : all) one = static_cast<std::byte>(random());
    return all;
}

std::vector<std::int64_t> shuffled_index(std::size_t count, unsigned seed) {
    std::vector<std::int64_t> index(count);
    std::iota(index.begin(), index.end(), 0);
    std::ranges::shuffle(index, std::mt19937(seed));
    return index;
}

waywiser_status status_of_call(const std::function<void()>& call) {
    try {
        call();
    } catch (const TransferError& error) {
        return error.status();
    }
    return WAYWISER_OK;
}

class Submit : public test::OnFake {
protected:
    Submit() { fake::set_current_device(0); }

    // A layer's blocks from the device to the host, in a random order.
    TransferOperation offload(std::size_t layer, std::byte* host) {
        return TransferOperation::blocks(
            {host + layer * kArray, kLayerBlock, kLayerBlocks},
            {device.data() + layer * kArray, kLayerBlock, kLayerBlocks}, kLayerBlock, to_index,
            from_index);
    }
    std::vector<TransferOperation> offload_all(std::byte* host) {
        std::vector<TransferOperation> all;
        for (std::size_t layer = 0; layer < kLayers; ++layer) all.push_back(offload(layer, host));
        return all;
    }
    void expect_offloaded(const std::byte* host) {
        for (std::size_t layer = 0; layer < kLayers; ++layer) {
            for (std::size_t i = 0; i < kLayerBlocks; ++i) {
                const auto to = layer * kLayerBlocks + static_cast<std::size_t>(to_index[i]);
                const auto from = layer * kLayerBlocks + static_cast<std::size_t>(from_index[i]);
                ASSERT_EQ(std::memcmp(host + to * kLayerBlock, contents.data() + from * kLayerBlock,
                                      kLayerBlock),
                          0)
                    << "layer " << layer << ", block " << i;
            }
        }
    }

    Context context{{.threads = 3, .pinned_bytes = 8 * kMiB}};
    gpu::Stream stream{0};
    gpu::Gate gate{0};
    const std::vector<std::byte> contents = random_bytes(kLayers * kArray, 1);
    gpu::DeviceBuffer device{0, kLayers * kArray};
    gpu::HostBuffer pinned{kLayers * kArray, gpu::HostUse::portable, 0};
    std::vector<std::byte> pageable = std::vector<std::byte>(kLayers * kArray);
    std::vector<std::int64_t> to_index = shuffled_index(kLayerBlocks, 2);
    std::vector<std::int64_t> from_index = shuffled_index(kLayerBlocks, 3);

    void SetUp() override {
        context.copy(device.data(), contents.data(), contents.size(), stream.handle());
        stream.synchronize();
    }
};

TEST_F(Submit, MovesAllLayersInOneTransfer) {
    for (std::byte* const host : {pinned.data(), pageable.data()}) {
        for (const int way : {0, 1, 2, 3}) {
            std::fill(host, host + kLayers * kArray, std::byte{});
            const auto all = offload_all(host);
            if (way == 0) {
                EXPECT_EQ(context.submit(all, stream.handle()).result(), kLayers * kArray);
            } else if (way == 1) {
                context.submit_in_stream(all, stream.handle());
                stream.synchronize();
            } else if (way == 2) {
                bool ended = false;
                EXPECT_FALSE(context.submit_and_wait(all, stream.handle(), -1, &ended));
                EXPECT_TRUE(ended);
            } else {
                const TransferPlan plan = context.plan(all);
                EXPECT_EQ(plan.submit(stream.handle()).result(), kLayers * kArray);
                std::fill(host, host + kLayers * kArray, std::byte{});
                plan.submit_in_stream(stream.handle());
                stream.synchronize();
            }
            expect_offloaded(host);
        }
    }
}

// Ranges, blocks, a read and a write, before which the stream is busy.
TEST_F(Submit, MovesOperationsOfAllKinds) {
    const SubmitFile from;
    const SubmitFile to;
    constexpr std::size_t kBytes = 3 * kMiB + 5;
    const auto in_file = random_bytes(kBytes, 4);
    ASSERT_EQ(pwrite(from.number(), in_file.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
    gpu::DeviceBuffer read_to(0, kBytes);
    for (const bool waits : {false, true}) {
        std::vector<std::byte> one(kMiB);
        std::vector<std::byte> other(kMiB + 1);
        std::ranges::fill(pageable, std::byte{});
        const std::array operations{
            offload(1, pageable.data()),
            TransferOperation::copy(one.data(), device.data(), one.size()),
            TransferOperation::read(from.number(), 0, read_to.data(), kBytes),
            TransferOperation::write(to.number(), 0, device.data() + kMiB, 2 * kMiB,
                                     {.truncate = true}),
            TransferOperation::copy(other.data(), device.data() + 7, other.size()),
            TransferOperation::copy(nullptr, nullptr, 0)};
        gate.close(stream);
        TransferHandle left = waits ? context.submit_and_wait(operations, stream.handle(), 0.01)
                                    : context.submit(operations, stream.handle());
        ASSERT_TRUE(left);
        EXPECT_FALSE(left.done());
        EXPECT_EQ(left.query().bytes, kArray + one.size() + kBytes + 2 * kMiB + other.size());
        gate.open();
        EXPECT_EQ(left.result(), kArray + one.size() + kBytes + 2 * kMiB + other.size());
        EXPECT_TRUE(std::equal(one.begin(), one.end(), contents.begin()));
        EXPECT_TRUE(std::equal(other.begin(), other.end(), contents.begin() + 7));
        const auto written = to.bytes(2 * kMiB);
        EXPECT_TRUE(std::equal(written.begin(), written.end(), contents.begin() + kMiB));
        std::vector<std::byte> back(kBytes);
        EXPECT_FALSE(context.copy_and_wait(back.data(), read_to.data(), kBytes, stream.handle()));
        EXPECT_EQ(back, in_file);
    }
}

// What one operation writes no other one may read or write; blocks of two may take turns in one
// array.
TEST_F(Submit, RejectsOperationsThatAreNotApart) {
    std::byte* const host = pinned.data();
    const auto status = [&](const std::vector<TransferOperation>& all) {
        return status_of_call([&] { context.submit(all, stream.handle()).result(); });
    };
    EXPECT_EQ(status({TransferOperation::copy(host, device.data(), 100),
                      TransferOperation::copy(host + 99, device.data() + kMiB, 100)}),
              WAYWISER_INVALID);
    EXPECT_EQ(
        status({offload(0, host), TransferOperation::copy(host + kArray - 1, device.data(), 1)}),
        WAYWISER_INVALID);
    EXPECT_EQ(status({offload(0, host), offload(0, host)}), WAYWISER_INVALID);
    EXPECT_EQ(
        status({offload(0, host), TransferOperation::copy(device.data(), host + 2 * kArray, 1)}),
        WAYWISER_INVALID);
    const SubmitFile file;
    EXPECT_EQ(status({offload(0, host), TransferOperation::read(file.number(), 0, host + 3, 1)}),
              WAYWISER_INVALID);
    EXPECT_EQ(status({offload(0, host), TransferOperation::write(file.number(), 0, host + 3, 1)}),
              WAYWISER_INVALID);
    // Both layers of a block lie side by side.
    const auto interleaved = [&](std::size_t layer) {
        return TransferOperation::blocks(
            {host + layer * kLayerBlock, 2 * kLayerBlock, kLayerBlocks},
            {device.data() + layer * kArray, kLayerBlock, kLayerBlocks}, kLayerBlock, to_index,
            from_index);
    };
    EXPECT_EQ(status({interleaved(0), interleaved(1)}), WAYWISER_OK);
    for (std::size_t i = 0; i < 2 * kLayerBlocks; ++i) {
        const std::size_t layer = i % 2;
        const std::size_t n = i / 2;
        const auto to = 2 * static_cast<std::size_t>(to_index[n]) + layer;
        const auto from = layer * kLayerBlocks + static_cast<std::size_t>(from_index[n]);
        ASSERT_EQ(
            std::memcmp(host + to * kLayerBlock, contents.data() + from * kLayerBlock, kLayerBlock),
            0)
            << i;
    }
    EXPECT_EQ(status({interleaved(0), interleaved(0)}), WAYWISER_INVALID);
}

TEST_F(Submit, ChecksItsArguments) {
    waywiser_transfer* transfer = nullptr;
    std::byte one{};
    std::byte two{};
    waywiser_operation operation = TransferOperation::copy(&one, &two, 1);
    const auto submit = [&](waywiser_context* used, std::uint32_t flags,
                            waywiser_transfer** place) {
        return waywiser_submit(used, &operation, 1, WAYWISER_NO_STREAM, flags, place);
    };
    EXPECT_EQ(submit(context.get(), WAYWISER_IN_STREAM, nullptr), WAYWISER_OK);
    EXPECT_EQ(submit(context.get(), 0, nullptr), WAYWISER_INVALID);
    EXPECT_EQ(submit(nullptr, 0, &transfer), WAYWISER_INVALID);
    EXPECT_EQ(submit(context.get(), 64, &transfer), WAYWISER_INVALID);
    EXPECT_NE(std::string(waywiser_last_error()).find("64"), std::string::npos);
    EXPECT_EQ(submit(context.get(), WAYWISER_SNAPSHOT, &transfer), WAYWISER_INVALID);
    EXPECT_EQ(waywiser_submit(context.get(), nullptr, 1, nullptr, 0, &transfer), WAYWISER_INVALID);
    EXPECT_EQ(waywiser_submit(context.get(), nullptr, 0, nullptr, WAYWISER_IN_STREAM, nullptr),
              WAYWISER_OK);
    operation.size = 8;
    EXPECT_EQ(submit(context.get(), 0, &transfer), WAYWISER_INVALID);
    operation.size = sizeof operation;
    operation.kind = static_cast<waywiser_operation_kind>(77);
    EXPECT_EQ(submit(context.get(), 0, &transfer), WAYWISER_UNSUPPORTED);
    EXPECT_EQ(transfer, nullptr);
    std::array operations{TransferOperation::copy(&one, &two, 1),
                          TransferOperation::copy(&one, &two, 0)};
    operations[1].size = 200;
    EXPECT_EQ(status_of_call([&] { context.submit_in_stream(operations); }), WAYWISER_INVALID);
}

// Fields that a later header has are accepted while they are 0.
TEST_F(Submit, AcceptsOperationsOfLaterHeaders) {
    struct Later {
        waywiser_operation known;
        std::size_t added;
    };
    std::array<Later, 2> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].known =
            TransferOperation::copy(pageable.data() + i * kMiB, device.data() + i * kMiB, kMiB);
        all[i].known.size = sizeof(Later);
    }
    const auto submit = [&] {
        return waywiser_submit(context.get(), &all[0].known, all.size(), stream.handle(),
                               WAYWISER_IN_STREAM, nullptr);
    };
    EXPECT_EQ(submit(), WAYWISER_OK);
    stream.synchronize();
    EXPECT_TRUE(std::equal(pageable.begin(), pageable.begin() + 2 * kMiB, contents.begin()));
    all[1].added = 1;
    EXPECT_EQ(submit(), WAYWISER_UNSUPPORTED);
}

// When the second operation fails, nothing of the first is in use any more.
TEST_F(Submit, EndsAllWhenOneOperationFails) {
    const SubmitFile read_only;
    const int closed = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (std::byte* const host : {pinned.data(), pageable.data()}) {
        const std::array operations{
            offload(0, host), TransferOperation::read(closed, 0, host + 2 * kArray, 8 * kKiB)};
        EXPECT_EQ(status_of_call([&] { context.submit(operations, stream.handle()).result(); }),
                  WAYWISER_IO);
        EXPECT_EQ(status_of_call([&] { context.submit_in_stream(operations, stream.handle()); }),
                  WAYWISER_IO);
        EXPECT_EQ(
            status_of_call([&] { (void)context.submit_and_wait(operations, stream.handle()); }),
            WAYWISER_IO);
    }
    close(closed);
    stream.synchronize();
    EXPECT_EQ(context.usage().transfers, 0U);
}

TEST_F(Submit, SnapshotsRangesAndBlocks) {
    const std::array operations{
        offload(0, pinned.data()),
        TransferOperation::copy(pinned.data() + kArray, device.data() + kArray, 9)};
    waywiser_transfer* transfer = nullptr;
    ASSERT_EQ(waywiser_submit(context.get(), operations.data(), operations.size(), stream.handle(),
                              WAYWISER_SNAPSHOT, &transfer),
              WAYWISER_OK);
    EXPECT_EQ(TransferHandle(transfer).result(), kArray + 9);
    EXPECT_EQ(std::memcmp(pinned.data() + kArray, contents.data() + kArray, 9), 0);
    for (std::size_t i = 0; i < kLayerBlocks; ++i) {
        const auto to = static_cast<std::size_t>(to_index[i]);
        const auto from = static_cast<std::size_t>(from_index[i]);
        ASSERT_EQ(std::memcmp(pinned.data() + to * kLayerBlock,
                              contents.data() + from * kLayerBlock, kLayerBlock),
                  0);
    }
}

// A plan owns its indexes, and threads use it at once.
TEST_F(Submit, PlansOwnTheirIndexes) {
    std::vector<std::byte> hosts[3];
    const auto to = to_index;
    const auto from = from_index;
    std::vector<TransferPlan> plans;
    for (auto& host : hosts) {
        host.resize(kLayers * kArray);
        plans.push_back(context.plan(offload_all(host.data())));
    }
    std::ranges::fill(to_index, -1);
    std::ranges::fill(from_index, -1);
    for (int round = 0; round < 3; ++round) {
        std::vector<std::thread> threads;
        for (const TransferPlan& plan : plans) {
            threads.emplace_back([&plan] {
                const gpu::Stream own(0);
                EXPECT_EQ(plan.submit(own.handle()).result(), kLayers * kArray);
                plan.submit_in_stream(own.handle());
                own.synchronize();
            });
        }
        for (std::thread& thread : threads) thread.join();
        to_index = to;
        from_index = from;
        for (auto& host : hosts) {
            expect_offloaded(host.data());
            std::ranges::fill(host, std::byte{});
        }
    }
    const std::array wrong{TransferOperation::copy(nullptr, pinned.data(), 3)};
    EXPECT_EQ(status_of_call([&] { context.plan(wrong).submit().result(); }), WAYWISER_INVALID);
    EXPECT_EQ(waywiser_plan_submit(nullptr, nullptr, WAYWISER_IN_STREAM, nullptr),
              WAYWISER_INVALID);
    waywiser_plan_release(nullptr);
}

// --- cancelling ------------------------------------------------------------------------------

class Cancel : public Submit {
protected:
    // Starts one transfer of every kind that threads make, behind the closed gate. All are apart.
    std::vector<TransferHandle> start_all(Context& used) {
        std::vector<TransferHandle> all;
        all.push_back(
            used.copy_async(pageable.data(), device.data(), kLayers * kArray, stream.handle()));
        all.push_back(used.copy_async(other.data(), sent.data(), kMiB, stream.handle()));
        all.push_back(used.submit(offload_all(offloaded.data()), stream.handle()));
        all.push_back(
            used.read_async(file.number(), 0, other.data() + kMiB, kMiB, stream.handle()));
        all.push_back(used.write_async(file.number(), kMiB, device.data(), kMiB, stream.handle()));
        waywiser_transfer* snapshot = nullptr;
        void* const to[] = {taken.data()};
        const void* const from[] = {device.data()};
        const std::size_t bytes[] = {taken.size()};
        EXPECT_EQ(waywiser_snapshot(used.get(), to, from, bytes, 1, stream.handle(), &snapshot),
                  WAYWISER_OK);
        all.emplace_back(snapshot);
        return all;
    }

    gpu::DeviceBuffer other{0, 2 * kMiB};
    const std::vector<std::byte> sent = random_bytes(kMiB, 8);
    std::vector<std::byte> offloaded = std::vector<std::byte>(kLayers * kArray);
    std::vector<std::byte> taken = std::vector<std::byte>(2 * kMiB);
    SubmitFile file;
};

// Before their start, transfers end at once.
TEST_F(Cancel, EndsTransfersThatWaitForTheStream) {
    for (const double spin : {0.0, 0.01}) {
        Context used({.threads = 3, .pinned_bytes = 8 * kMiB, .spin_seconds = spin});
        const std::vector<std::byte> before = pageable;
        gate.close(stream);
        const auto all = start_all(used);
        for (const TransferHandle& one : all) {
            EXPECT_FALSE(one.done());
            one.cancel();
            EXPECT_EQ(status_of_call([&] { one.result(kEndSeconds); }), WAYWISER_CANCELLED);
            const waywiser_transfer_info info = one.query();
            EXPECT_EQ(info.ended, 1);
            EXPECT_EQ(info.status, WAYWISER_CANCELLED);
            EXPECT_EQ(info.moved, 0U);
            EXPECT_NE(std::string(info.message), "");
            one.cancel();  // again
            EXPECT_EQ(status_of_call([&] { one.wait(stream.handle()); }), WAYWISER_CANCELLED);
        }
        EXPECT_EQ(used.usage().transfers, 0U);
        EXPECT_EQ(pageable, before);
        gate.open();
        stream.synchronize();
        EXPECT_EQ(pageable, before);
    }
}

// While they run: each ends, in success or cancelled, and the context works on.
TEST_F(Cancel, EndsTransfersThatRun) {
    fake::configure("h2d=4;d2h=4;latency=20");
    std::mt19937 random(7);
    std::size_t cancelled = 0;
    for (const double spin : {0.0, 0.01}) {
        Context used({.threads = 3, .pinned_bytes = 4 * kMiB, .spin_seconds = spin});
        for (int round = 0; round < 40; ++round) {
            const auto all = start_all(used);
            for (const TransferHandle& one : all) {
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
                one.cancel();
            }
            for (const TransferHandle& one : all) {
                const auto status = status_of_call([&] { one.result(kEndSeconds); });
                EXPECT_TRUE(status == WAYWISER_OK || status == WAYWISER_CANCELLED) << status;
                if (status == WAYWISER_CANCELLED) ++cancelled;
            }
            EXPECT_EQ(used.usage().transfers, 0U);
        }
        stream.synchronize();
        std::vector<std::byte> host(kLayers * kArray);
        used.copy(device.data(), contents.data(), contents.size(), stream.handle());
        EXPECT_FALSE(used.copy_and_wait(host.data(), device.data(), host.size(), stream.handle()));
        EXPECT_EQ(host, contents);
    }
    EXPECT_GT(cancelled, 0U);
}

// Several threads cancel one transfer while others wait for it, in each way.
TEST_F(Cancel, MayBeCalledByThreadsAtOnce) {
    fake::configure("h2d=4;d2h=4");
    for (int round = 0; round < 30; ++round) {
        const auto all = start_all(context);
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&, i] {
                for (const TransferHandle& one : all) {
                    if (i == 2) {
                        (void)status_of_call([&] { one.result(kEndSeconds); });
                    } else {
                        one.cancel();
                    }
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        for (const TransferHandle& one : all) EXPECT_TRUE(one.done());
    }
}

// Copies that are in a stream of the runtime are made all the same.
TEST_F(Cancel, LeavesPlainCopiesAlone) {
    gate.close(stream);
    const TransferHandle plain =
        context.copy_async(pinned.data(), device.data(), kMiB, stream.handle());
    plain.cancel();
    EXPECT_FALSE(plain.done());
    gate.open();
    EXPECT_EQ(plain.result(), kMiB);
    EXPECT_EQ(std::memcmp(pinned.data(), contents.data(), kMiB), 0);
    EXPECT_EQ(waywiser_transfer_cancel(nullptr), WAYWISER_OK);
}

// --- waits, queries and callbacks ------------------------------------------------------------

TEST_F(Submit, WaitsForAnyOfSeveralTransfers) {
    constexpr std::size_t kTransfers = 16;
    std::vector<gpu::Stream> streams;
    std::vector<std::unique_ptr<gpu::Gate>> gates;
    std::vector<TransferHandle> transfers;
    streams.reserve(kTransfers);
    for (std::size_t i = 0; i < kTransfers; ++i) {
        streams.emplace_back(0);
        gates.push_back(std::make_unique<gpu::Gate>(0));
        gates.back()->close(streams.back());
        std::byte* const host = (i % 2 == 0 ? pinned.data() : pageable.data()) + i * kLayerBlock;
        transfers.push_back(context.copy_async(host, device.data() + i * kLayerBlock, kLayerBlock,
                                               streams.back().handle()));
    }
    EXPECT_EQ(status_of_call([&] { wait_any(transfers, 0.01); }), WAYWISER_TIMEOUT);
    EXPECT_EQ(status_of_call([&] { wait_any(transfers, 0); }), WAYWISER_TIMEOUT);
    std::vector<std::size_t> order(kTransfers);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::mt19937(5));
    std::vector<std::size_t> numbers(kTransfers);
    std::iota(numbers.begin(), numbers.end(), 0);
    for (const std::size_t next : order) {
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            gates[next]->open();
        });
        const std::size_t at = wait_any(transfers);
        later.join();
        EXPECT_EQ(numbers[at], next);
        EXPECT_EQ(transfers[at].result(), kLayerBlock);
        transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(at));
        numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(at));
    }
    EXPECT_EQ(status_of_call([&] { wait_any(transfers); }), WAYWISER_INVALID);
    const std::array<TransferHandle, 2> none{};
    EXPECT_EQ(wait_any(none), 0U);
    EXPECT_EQ(status_of_call([&] { wait_any(none, std::nan("")); }), WAYWISER_INVALID);
}

// A transfer that has failed has ended.
TEST_F(Submit, QueriesAFailedTransfer) {
    const int closed = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const TransferHandle failed =
        context.read_async(closed, 0, device.data(), kMiB, stream.handle());
    EXPECT_EQ(wait_any({&failed, 1}), 0U);
    const waywiser_transfer_info info = failed.query();
    close(closed);
    EXPECT_EQ(info.ended, 1);
    EXPECT_EQ(info.status, WAYWISER_IO);
    EXPECT_EQ(info.error, EBADF);
    EXPECT_EQ(info.bytes, kMiB);
    EXPECT_EQ(info.moved, 0U);
    EXPECT_NE(std::string(info.message), "");
    waywiser_transfer_info small{};
    small.size = 3;
    EXPECT_EQ(waywiser_transfer_query(failed.get(), &small), WAYWISER_INVALID);
    small.size = sizeof small;
    EXPECT_EQ(waywiser_transfer_query(nullptr, &small), WAYWISER_OK);
    EXPECT_EQ(small.ended, 1);
}

TEST_F(Submit, CallsBackOnceAtTheEnd) {
    for (const bool plain : {true, false}) {
        for (const bool late : {true, false}) {
            if (!late) gate.close(stream);
            TransferHandle transfer = context.copy_async(plain ? pinned.data() : pageable.data(),
                                                         device.data(), kMiB, stream.handle());
            if (late) transfer.result();
            std::atomic<int> calls{0};
            std::promise<waywiser_transfer_info> info;
            transfer.on_end([&](const waywiser_transfer_info& now) {
                ++calls;
                info.set_value(now);
            });
            transfer = {};  // the handle is not needed
            EXPECT_EQ(calls, late ? 1 : 0);
            if (!late) gate.open();
            const waywiser_transfer_info got = info.get_future().get();
            EXPECT_EQ(got.ended, 1);
            EXPECT_EQ(got.status, WAYWISER_OK);
            EXPECT_EQ(got.moved, kMiB);
            EXPECT_EQ(calls, 1);
        }
    }
    int none = 0;
    TransferHandle().on_end([&](const waywiser_transfer_info& now) { none += now.ended; });
    EXPECT_EQ(none, 1);
    EXPECT_EQ(waywiser_transfer_on_end(nullptr, nullptr, nullptr), WAYWISER_INVALID);
}

// A chain: each callback submits the next transfer, and the last one ends the test.
TEST_F(Submit, CallbacksMaySubmit) {
    constexpr int kLength = 20;
    std::promise<void> end;
    std::vector<TransferHandle> transfers(kLength);
    std::function<void(int)> next = [&](int number) {
        if (number == kLength) return end.set_value();
        transfers[static_cast<std::size_t>(number)] =
            context.copy_async(pageable.data(), device.data(), kMiB, stream.handle());
        transfers[static_cast<std::size_t>(number)].on_end(
            [&next, number](const waywiser_transfer_info& info) {
                EXPECT_EQ(info.status, WAYWISER_OK);
                next(number + 1);
            });
    };
    next(0);
    end.get_future().wait();
}

// Cancelled transfers, and those whose context is released, call back too.
TEST_F(Submit, CallbacksOfTransfersThatDoNotArrive) {
    std::atomic<int> cancelled{0};
    const auto count = [&](const waywiser_transfer_info& info) {
        if (info.ended == 1 && info.status == WAYWISER_CANCELLED) ++cancelled;
    };
    gate.close(stream);
    {
        Context other({.threads = 2});
        for (int i = 0; i < 2; ++i) {
            const TransferHandle one =
                other.copy_async(pageable.data(), device.data(), kMiB, stream.handle());
            one.on_end(count);
            if (i == 0) one.cancel();
        }
    }
    EXPECT_EQ(cancelled, 2);
    gate.open();
}

// --- tracers ---------------------------------------------------------------------------------

class Tracer : public Submit {
protected:
    ~Tracer() override { waywiser_set_tracer(nullptr); }

    struct Seen {
        waywiser_trace_record begin{};
        waywiser_trace_record end{};
        std::thread::id thread;
        int ends = 0;
    };

    void set() {
        waywiser_tracer tracer{};
        tracer.size = sizeof tracer;
        tracer.data = this;
        tracer.begin = [](void* data, const waywiser_trace_record* record) {
            auto& self = *static_cast<Tracer*>(data);
            const std::lock_guard lock(self.mutex);
            Seen& seen = self.all[record->id];
            seen.begin = *record;
            seen.thread = std::this_thread::get_id();
        };
        tracer.end = [](void* data, const waywiser_trace_record* record) {
            auto& self = *static_cast<Tracer*>(data);
            const std::lock_guard lock(self.mutex);
            Seen& seen = self.all[record->id];
            seen.end = *record;
            ++seen.ends;
            if (seen.ends == 1) ++self.ended;
        };
        ASSERT_EQ(waywiser_set_tracer(&tracer), WAYWISER_OK);
        EXPECT_EQ(waywiser_set_tracer(&tracer), WAYWISER_INVALID);
    }
    // All transfers that have begun, when they have ended.
    std::vector<Seen> wait_for(std::size_t count) {
        for (int i = 0; i < 60000 && ended < count; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        const std::lock_guard lock(mutex);
        std::vector<Seen> seen;
        for (const auto& [id, one] : all) seen.push_back(one);
        return seen;
    }

    std::mutex mutex;
    std::map<std::uint64_t, Seen> all;
    std::atomic<std::size_t> ended{0};
};

TEST_F(Tracer, SeesEachTransferFromItsCallToItsEnd) {
    const SubmitFile file;
    set();
    context.copy(device.data(), pinned.data(), kMiB, stream.handle());
    context.copy(pageable.data(), device.data(), 16 * kKiB, stream.handle());
    (void)context.copy_async(pageable.data(), device.data(), kMiB, stream.handle()).result();
    EXPECT_FALSE(context.copy_and_wait(pageable.data(), device.data(), kMiB, stream.handle()));
    const std::array operations{offload(0, pinned.data()), offload(1, pinned.data())};
    (void)context.submit(operations, stream.handle()).result();
    context.write(file.number(), 0, device.data(), kMiB, stream.handle());
    context.read(file.number(), 0, pageable.data(), kMiB, StreamRef::none());
    EXPECT_EQ(status_of_call([&] { context.copy(nullptr, pageable.data(), 3); }), WAYWISER_INVALID);
    context.plan(operations).submit_in_stream(stream.handle());
    const auto seen = wait_for(9);
    ASSERT_EQ(waywiser_set_tracer(nullptr), WAYWISER_OK);
    context.copy(device.data(), pinned.data(), kMiB, stream.handle());
    ASSERT_EQ(seen.size(), 9U);
    ASSERT_EQ(all.size(), 9U);
    for (const Seen& one : seen) {
        EXPECT_EQ(one.ends, 1);
        EXPECT_EQ(one.thread, std::this_thread::get_id());
        EXPECT_EQ(one.begin.thread, static_cast<std::uint64_t>(gettid()));
        EXPECT_EQ(one.begin.ended, 0U);
        EXPECT_LE(one.end.called, one.end.returned);
        EXPECT_LE(one.end.called, one.end.ended);
        EXPECT_EQ(one.begin.called, one.end.called);
        EXPECT_EQ(one.end.bytes, one.begin.bytes);
    }
    const auto& copied = seen[0].end;
    EXPECT_EQ(copied.kind, WAYWISER_COPY);
    EXPECT_EQ(copied.bytes, kMiB);
    EXPECT_EQ(copied.moved, kMiB);
    EXPECT_EQ(copied.to_kind, WAYWISER_DEVICE);
    EXPECT_EQ(copied.from_kind, WAYWISER_PINNED);
    EXPECT_EQ(copied.to_gpu, 0);
    EXPECT_EQ(copied.from_gpu, -1);
    EXPECT_EQ(copied.flags, WAYWISER_IN_STREAM);
    EXPECT_EQ(copied.stream, stream.handle());
    EXPECT_EQ(seen[1].end.to_kind, WAYWISER_PAGEABLE);
    EXPECT_EQ(seen[2].end.flags, 0U);
    EXPECT_EQ(seen[2].end.moved, kMiB);
    EXPECT_EQ(seen[3].end.waits, 1);
    EXPECT_EQ(seen[4].end.kind, WAYWISER_BLOCKS);
    EXPECT_EQ(seen[4].end.operations, 2U);
    EXPECT_EQ(seen[4].end.bytes, 2 * kArray);
    EXPECT_EQ(seen[4].end.moved, 2 * kArray);
    EXPECT_EQ(seen[5].end.kind, WAYWISER_WRITE);
    EXPECT_EQ(seen[5].end.to_kind, WAYWISER_FILE);
    EXPECT_EQ(seen[6].end.kind, WAYWISER_READ);
    EXPECT_EQ(seen[7].end.status, WAYWISER_INVALID);
    EXPECT_EQ(seen[8].end.kind, WAYWISER_BLOCKS);
    EXPECT_EQ(seen[8].end.moved, 2 * kArray);
}

// The end of a copy that is ordered in a stream is when the stream reaches it.
TEST_F(Tracer, SeesWhenTheStreamHasCopied) {
    set();
    gate.close(stream);
    context.copy(pinned.data(), device.data(), kMiB, stream.handle());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(ended, 0U);
    gate.open();
    const auto seen = wait_for(1);
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_GE(seen[0].end.ended - seen[0].end.returned, 5'000'000U);
}

// What is recorded in a graph has no end of its own.
TEST_F(Tracer, SeesCopiesThatAreRecorded) {
    set();
    const gpu::Graph graph(
        stream, [&] { context.copy(pinned.data(), device.data(), kMiB, stream.handle()); });
    EXPECT_EQ(wait_for(1).size(), 1U);
}

TEST_F(Tracer, NeedsItsFunctions) {
    waywiser_tracer tracer{};
    tracer.size = sizeof tracer;
    EXPECT_EQ(waywiser_set_tracer(&tracer), WAYWISER_INVALID);
    tracer.size = 1;
    EXPECT_EQ(waywiser_set_tracer(&tracer), WAYWISER_INVALID);
    EXPECT_EQ(waywiser_set_tracer(nullptr), WAYWISER_OK);
}

}  // namespace
}  // namespace waywiser
