// What a context takes of a GPU: staging memory within its limit, and streams that go back.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "transfer/copy_streams.hpp"
#include "transfer/list_pipeline.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kListBlock = 64 * kKiB;
constexpr std::size_t kListBlocks = 256;  // 16 MiB

class Bounds : public test::OnFake {
protected:
    // Copies a list into GPU memory, by a pipeline if one is free.
    struct List {
        gpu::DeviceBuffer device{0, 2 * kListBlock * kListBlocks};
        gpu::HostBuffer pinned{kListBlock * kListBlocks, gpu::HostUse::portable, 0};
        std::vector<std::int64_t> to = std::vector<std::int64_t>(kListBlocks);
        std::vector<std::int64_t> from = std::vector<std::int64_t>(kListBlocks);

        List() {
            std::iota(from.begin(), from.end(), std::int64_t{0});
            for (const std::int64_t i : from) {
                to[static_cast<std::size_t>(i)] = 2 * i + (i % 3 == 0 ? 1 : 0);
            }
            const auto content = test::sequence(kListBlock * kListBlocks, 3);
            std::memcpy(pinned.data(), content.data(), content.size());
        }
        void copy(Context& context, const gpu::Stream& stream) {
            context.copy_blocks({device.data(), kListBlock, 2 * kListBlocks},
                                {pinned.data(), kListBlock, kListBlocks}, kListBlock, to, from,
                                stream.handle());
        }
        [[nodiscard]] bool arrived() const {
            for (std::size_t i = 0; i < kListBlocks; ++i) {
                const std::byte* const there =
                    device.data() + static_cast<std::size_t>(to[i]) * kListBlock;
                if (!test::same_bytes(there, pinned.data() + i * kListBlock, kListBlock))
                    return false;
            }
            return true;
        }
    };
};

// Six lists at once, each behind other work in a stream of its own.
TEST_F(Bounds, ListsStayWithinTheMemoryOfAGpu) {
    fake::configure("latency=0;event=0;h2d=200;d2h=200;d2d=500");
    for (const std::size_t most : {kMiB, 4 * kMiB, 16 * kMiB, 40 * kMiB, 96 * kMiB}) {
        std::vector<List> lists(6);
        Context context(
            {.threads = 2, .pinned_bytes = 4 * kMiB, .relay_bytes = most, .policy = "off"});
        const std::size_t before = gpu::free_bytes(0);
        std::vector<gpu::Stream> streams;
        std::vector<std::unique_ptr<gpu::Gate>> gates;
        for (List& list : lists) {
            streams.emplace_back(0);
            gates.push_back(std::make_unique<gpu::Gate>(0));
            gates.back()->close(streams.back());
            list.copy(context, streams.back());
        }
        const std::size_t taken = before - gpu::free_bytes(0);
        const waywiser_usage usage = context.usage();
        EXPECT_LE(taken, most);
        EXPECT_EQ(usage.gpu_bytes, taken);
        EXPECT_EQ(usage.most_gpu_bytes, most);
        if (most >= 4 * kMiB) {
            EXPECT_GE(taken, 3 * kMiB) << "no pipeline was used";
        }
        for (const auto& gate : gates) gate->open();
        for (const auto& stream : streams) stream.synchronize();
        for (const List& list : lists) EXPECT_TRUE(list.arrived());
    }
}

// Relays and lists on the same GPU share the limit.
TEST_F(Bounds, RelaysAndListsShareTheMemoryOfAGpu) {
    fake::configure("latency=0;event=0;h2d=200;d2h=200;d2d=500;peer=500");
    constexpr std::size_t kMost = 40 * kMiB;
    constexpr std::size_t kRelayed = 64 * kMiB;
    List list;
    const gpu::DeviceBuffer other(1, kRelayed);
    const gpu::HostBuffer pinned(kRelayed, gpu::HostUse::portable, 0);
    const gpu::Stream stream(0);
    const gpu::Stream second(1);
    Context context({.threads = 3,
                     .pinned_bytes = 16 * kMiB,
                     .relays = {0},
                     .relay_bytes = kMost,
                     .policy = "off"});
    const std::size_t before = gpu::free_bytes(0);
    for (int i = 0; i < 3; ++i) {
        list.copy(context, stream);
        context.copy(other.data(), pinned.data(), kRelayed, second.handle());
        EXPECT_LE(before - gpu::free_bytes(0), kMost);
    }
    stream.synchronize();
    second.synchronize();
    EXPECT_TRUE(list.arrived());
    EXPECT_LE(context.usage().gpu_bytes, kMost);
}

TEST_F(Bounds, APipelineFitsIntoAnyMemory) {
    for (std::size_t bytes = 0; bytes < 40 * kMiB; bytes += 512 * kKiB + 1) {
        const transfer::PipelineShape shape = transfer::pipeline_within(bytes);
        EXPECT_LE(shape.bytes(), bytes);
        EXPECT_EQ(shape.chunk == 0, bytes < 3 * kMiB) << bytes;
    }
}

void snapshot_in(Context& context, std::byte* to, const std::byte* from, std::size_t bytes,
                 void* stream) {
    void* const target = to;
    const void* const source = from;
    EXPECT_EQ(context.snapshot({&target, 1}, {&source, 1}, {&bytes, 1}, stream).result(), bytes);
}

// A program that makes and destroys streams all the time.
TEST_F(Bounds, StreamsWithoutCopiesAreUsedAgain) {
    const gpu::DeviceBuffer device(0, kMiB);
    const gpu::HostBuffer pinned(kMiB, gpu::HostUse::portable, 0);
    Context context({.threads = 2, .pinned_bytes = 4 * kMiB, .policy = "off"});
    const std::size_t before = fake::live().streams;
    std::vector<std::unique_ptr<gpu::Stream>> kept;
    for (int i = 0; i < 100; ++i) {
        kept.push_back(std::make_unique<gpu::Stream>(0));
        snapshot_in(context, pinned.data(), device.data(), kMiB, kept.back()->handle());
    }
    EXPECT_EQ(context.usage().streams, fake::live().streams - before - kept.size());
    kept.clear();
    // A stream is busy for a moment after the event of its last copy has happened.
    EXPECT_LE(fake::live().streams - before, 8U);
}

TEST_F(Bounds, NoTwoStreamsInUseShareOne) {
    using Use = transfer::CopyStreams::Use;
    transfer::CopyStreams pool;
    const gpu::Stream one(0);
    const gpu::Stream two(0);
    gpu::Gate gate(0);
    const void* first = nullptr;
    {
        const auto lease = pool.beside(0, one.handle(), Use::snapshot);
        first = (*lease).handle();
        gate.close(*lease);
    }
    {
        const auto lease = pool.beside(0, two.handle(), Use::snapshot);
        EXPECT_NE((*lease).handle(), first) << "its copies are not complete";
        const auto again = pool.beside(0, one.handle(), Use::snapshot);
        EXPECT_EQ((*again).handle(), first) << "copies of one stream follow each other";
        EXPECT_EQ(pool.size(), 2U);
        const auto other = pool.beside(0, one.handle(), Use::substitute);
        EXPECT_NE((*other).handle(), first) << "the program's stream would wait for the snapshot";
    }
    gate.open();
    gpu::synchronize_device(0);
    const gpu::Stream three(0);
    const auto lease = pool.beside(0, three.handle(), Use::snapshot);
    EXPECT_EQ(pool.size(), 3U);
    // The default streams of threads have one handle, and are not one stream.
    const auto mine = pool.beside(0, WAYWISER_PER_THREAD_STREAM, Use::snapshot);
    std::jthread([&] {
        const auto theirs = pool.beside(0, WAYWISER_PER_THREAD_STREAM, Use::snapshot);
        EXPECT_NE((*theirs).handle(), (*mine).handle());
    }).join();
}

}  // namespace
}  // namespace waywiser
