// Threads that stay awake for a while after a copy: medium copies of pageable memory in chunks.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::transfer {
namespace {

class AwakeThreads : public test::OnFake {};

waywiser::ContextOptions awake_options(double seconds) {
    return {.threads = 4, .pinned_bytes = 16 * kMiB, .policy = "off", .spin_seconds = seconds};
}

// CPU time of the process.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST_F(AwakeThreads, CopyMediumSizesInChunks) {
    const gpu::DeviceBuffer device(0, 8 * kMiB);
    std::vector<std::byte> host(8 * kMiB, std::byte{1});
    const gpu::HostBuffer pinned(8 * kMiB, gpu::HostUse::portable, 0);
    waywiser::Context usual(awake_options(0));
    waywiser::Context awake(awake_options(1e-3));
    const auto method = [&](waywiser::Context& context, const void* from, std::size_t bytes) {
        return context.explain(device.data(), from, bytes).substr(0, 7);
    };
    EXPECT_EQ(method(usual, host.data(), 4 * kMiB), "plain c");
    EXPECT_EQ(method(awake, host.data(), 4 * kMiB), "chunked");
    EXPECT_EQ(method(awake, host.data(), kMiB), "chunked");
    EXPECT_EQ(method(awake, host.data(), kMiB - 1), "plain c");
    EXPECT_EQ(method(awake, pinned.data(), 4 * kMiB), "plain c");
    EXPECT_EQ(awake.explain(host.data(), device.data(), 4 * kMiB).substr(0, 7), "chunked");
}

// Copies follow each other while threads spin, and after they have gone to sleep.
TEST_F(AwakeThreads, BringEveryByte) {
    waywiser::Context context(awake_options(200e-6));
    const gpu::DeviceBuffer device(0, 6 * kMiB);
    const gpu::Stream stream(0);
    unsigned round = 0;
    for (const std::size_t bytes : {kMiB, kMiB + 1, 3 * kMiB + 77, 6 * kMiB, 64 * kKiB, kMiB}) {
        for (int again = 0; again < 6; ++again) {
            const auto source = test::sequence(bytes, ++round);
            std::vector<std::byte> back(bytes, std::byte{0});
            context.copy(device.data(), source.data(), bytes, stream.handle());
            if (again == 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            context.copy(back.data(), device.data(), bytes, stream.handle());
            stream.synchronize();
            ASSERT_TRUE(test::same_bytes(back.data(), source.data(), bytes))
                << bytes << " bytes, round " << again;
        }
    }
}

// The staging memory holds a part of each copy at once: slots are used again and again.
TEST_F(AwakeThreads, CopyThroughRingsThatAreSmallerThanTheCopy) {
    fake::configure("h2d=20;d2h=20;latency=5");
    for (const std::size_t pinned : {2 * kMiB, 3 * kMiB, 8 * kMiB}) {
        for (const std::size_t threads : {1, 2, 5}) {
            waywiser::Context context({.threads = threads,
                                       .pinned_bytes = pinned,
                                       .policy = "off",
                                       .spin_seconds = 200e-6});
            constexpr std::size_t kMost = 9 * kMiB + 4097;
            const gpu::DeviceBuffer device(0, kMost);
            const gpu::Stream stream(0);
            unsigned round = 0;
            for (const std::size_t bytes : {kMost, 4 * kMiB, 5 * kMiB + 3, 1 * kMiB + 1}) {
                const auto source = test::sequence(bytes, ++round);
                std::vector<std::byte> back(bytes, std::byte{0});
                context.copy(device.data(), source.data(), bytes, stream.handle());
                context.copy(back.data(), device.data(), bytes, stream.handle());
                ASSERT_TRUE(test::same_bytes(back.data(), source.data(), bytes))
                    << bytes << " bytes, " << pinned << " pinned, " << threads << " threads";
            }
            EXPECT_LE(context.usage().pinned_bytes, pinned);
            // A copy returns when its bytes have arrived; its last thread leaves it after that.
            while (context.usage().transfers != 0) std::this_thread::yield();
        }
    }
}

// Each has memory of its own; the pinned memory is too little for all at once.
TEST_F(AwakeThreads, BringTheBytesOfSeveralCallers) {
    waywiser::Context context(awake_options(200e-6));
    const auto call = [&](unsigned start) {
        const gpu::DeviceBuffer device(0, 5 * kMiB);
        const gpu::Stream stream(0);
        for (unsigned round = 0; round < 4; ++round) {
            const std::size_t bytes = (1 + (start + round) % 5) * kMiB - round;
            const auto source = test::sequence(bytes, start * 100 + round);
            std::vector<std::byte> back(bytes, std::byte{0});
            const auto into =
                context.copy_async(device.data(), source.data(), bytes, stream.handle());
            into.wait(stream.handle());
            const auto out = context.copy_async(back.data(), device.data(), bytes, stream.handle());
            EXPECT_EQ(out.result(), bytes);
            EXPECT_TRUE(test::same_bytes(back.data(), source.data(), bytes))
                << start << ' ' << round;
        }
    };
    std::vector<std::thread> callers;
    for (unsigned i = 0; i < 4; ++i) callers.emplace_back(call, i);
    for (std::thread& each : callers) each.join();
}

// Copies to the GPU of these sizes. Their memory is prepared first, so that they start one right
// after the other.
class CopiesToGpu {
public:
    explicit CopiesToGpu(const std::vector<std::size_t>& sizes) {
        for (const std::size_t bytes : sizes) {
            devices_.emplace_back(0, bytes);
            hosts_.emplace_back(bytes, std::byte{7});
        }
    }
    void start(waywiser::Context& context, const gpu::Stream& stream) {
        for (std::size_t i = 0; i < hosts_.size(); ++i) {
            handles_.push_back(context.copy_async(devices_[i].data(), hosts_[i].data(),
                                                  hosts_[i].size(), stream.handle()));
        }
    }
    void expect_end() const {
        for (std::size_t i = 0; i < handles_.size(); ++i) {
            EXPECT_EQ(handles_[i].result(test::kHangSeconds), hosts_[i].size()) << i;
        }
    }

private:
    std::vector<gpu::DeviceBuffer> devices_;
    std::vector<std::vector<std::byte>> hosts_;
    std::vector<waywiser::TransferHandle> handles_;
};

// Of 16 MiB, 15 are for staging: these sizes use all of it at once.
std::vector<std::size_t> all_staging() { return {4 * kMiB, 4 * kMiB, 4 * kMiB, 2 * kMiB, kMiB}; }

// A thread that gets no staging for a chunk of the last copy has to go on with the others.
TEST_F(AwakeThreads, GoOnWhenTheirMemoryIsUsedUp) {
    const std::vector<std::byte> from(32 * kMiB, std::byte{1});
    std::vector<std::byte> to(32 * kMiB);
    std::vector<std::size_t> sizes = all_staging();
    sizes.push_back(40 * kMiB);
    for (int round = 0; round < 4 && !HasFailure(); ++round) {
        CopiesToGpu copies(sizes);
        waywiser::Context context(
            {.threads = 2, .pinned_bytes = 16 * kMiB, .policy = "off", .spin_seconds = 1e-3});
        const gpu::Stream stream(0);
        // The engine's one thread begins with this, and then takes one chunk of each.
        const auto first = context.copy_async(to.data(), from.data(), to.size(), stream.handle());
        copies.start(context, stream);
        copies.expect_end();
        EXPECT_EQ(first.result(test::kHangSeconds), to.size());
    }
}

// What a stream holds back holds no staging memory.
TEST_F(AwakeThreads, LeaveTheirMemoryToOthersUntilTheyStart) {
    CopiesToGpu waiting(all_staging());
    CopiesToGpu now({4 * kMiB});
    waywiser::Context context(awake_options(1e-3));
    const gpu::Stream held(0);
    const gpu::Stream other(0);
    gpu::Gate gate(0);
    gate.close(held);
    waiting.start(context, held);
    now.start(context, other);
    now.expect_end();
    gate.open();
    waiting.expect_end();
}

// The source may be changed as soon as the GPU's copies are in a stream, before the host has them.
TEST_F(AwakeThreads, OrderAChangeAfterTheirReads) {
    waywiser::Context context(awake_options(200e-6));
    const gpu::DeviceBuffer device(0, 4 * kMiB);
    const gpu::DeviceBuffer other(0, 4 * kMiB);
    const gpu::Stream stream(0);
    const auto first = test::sequence(4 * kMiB, 1);
    const auto second = test::sequence(4 * kMiB, 2);
    context.copy(other.data(), second.data(), second.size(), stream.handle());
    for (int round = 0; round < 10; ++round) {
        context.copy(device.data(), first.data(), first.size(), stream.handle());
        std::vector<std::byte> back(4 * kMiB, std::byte{0});
        const auto out =
            context.copy_async(back.data(), device.data(), back.size(), stream.handle());
        out.wait_source_read(stream.handle());
        gpu::copy_async(device.data(), other.data(), 4 * kMiB, stream);
        EXPECT_EQ(out.result(), back.size());
        EXPECT_TRUE(test::same_bytes(back.data(), first.data(), back.size())) << round;
    }
    stream.synchronize();
}

// They look for the start of a transfer, too, and not only when their time is over.
TEST_F(AwakeThreads, StartACopyWhenItsStreamHasReachedIt) {
    waywiser::Context context(awake_options(1));
    const gpu::DeviceBuffer device(0, 4 * kMiB);
    const auto source = test::sequence(4 * kMiB, 1);
    const gpu::Stream stream(0);
    gpu::Gate gate(0);
    context.copy(device.data(), source.data(), source.size(), stream.handle());
    double seconds = 1;
    for (int tries = 0; tries < 10 && seconds > 0.5; ++tries) {
        gate.close(stream);
        const auto left =
            context.copy_async(device.data(), source.data(), source.size(), stream.handle());
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the threads spin by now
        const auto start = std::chrono::steady_clock::now();
        gate.open();
        EXPECT_EQ(left.result(), source.size());
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        stream.synchronize();
    }
    EXPECT_LT(seconds, 0.5) << "seconds from the start to the end";
}

TEST_F(AwakeThreads, SleepAfterTheirTime) {
    waywiser::Context context(awake_options(1e-3));
    const gpu::DeviceBuffer device(0, 4 * kMiB);
    const auto source = test::sequence(4 * kMiB, 1);
    const gpu::Stream stream(0);
    context.copy(device.data(), source.data(), source.size(), stream.handle());
    stream.synchronize();
    // A thread that never sleeps would use this time fully.
    const auto used_in = [](std::chrono::milliseconds time) {
        const double before = cpu_seconds();
        std::this_thread::sleep_for(time);
        return cpu_seconds() - before;
    };
    double used = 0;
    for (int tries = 0; tries < 20; ++tries) {
        used = used_in(std::chrono::milliseconds(100));
        if (used < 0.05) break;
    }
    EXPECT_LT(used, 0.05) << "CPU seconds in 0.1 s after the copy";
}

TEST_F(AwakeThreads, HaveABound) {
    for (const double seconds : {-1.0, 1.5, std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()}) {
        try {
            waywiser::Context context(awake_options(seconds));
            ADD_FAILURE() << seconds;
        } catch (const TransferError& error) {
            EXPECT_EQ(error.status(), WAYWISER_INVALID) << seconds;
            EXPECT_NE(std::string(error.what()).find("spin_seconds"), std::string::npos);
        }
    }
    EXPECT_NO_THROW(waywiser::Context{awake_options(1)});
}

}  // namespace
}  // namespace waywiser::transfer
