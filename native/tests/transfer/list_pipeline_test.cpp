// Lists whose host side is contiguous, through staging memory on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "case_stride.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "transfer/list_method.hpp"
#include "transfer/list_pipeline.hpp"
#include "transfer/list_staging.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::transfer {
namespace {

std::byte* address(std::uintptr_t number) { return reinterpret_cast<std::byte*>(number); }

ListTraits list_traits(ListPath path, std::size_t piece, std::size_t count) {
    return {.path = path,
            .bytes = piece * count,
            .merged = count,
            .run = piece,
            .access = 16,
            .host_contiguous = true,
            .gpu_access = 16};
}

ListLimits list_limits(std::size_t list_bytes = 0) {
    return {.multiprocessors = 132, .of_pipeline = 8, .list_bytes = list_bytes};
}

TEST(ListPipelines, AreChosenForLongListsOfShortPieces) {
    for (const ListPath path : {ListPath::from_host, ListPath::to_host}) {
        for (const std::size_t piece : {kKiB, 4 * kKiB, 28 * kKiB}) {
            const ListTraits list = list_traits(path, piece, 256 * kMiB / piece);
            const ListChoice choice = choose_list_method(list, list_limits());
            EXPECT_EQ(choice.method, ListMethod::pipeline) << piece;
            EXPECT_EQ(choice.blocks, 8U);
            EXPECT_EQ(choice.chunk, PipelineShape{}.chunk);
            ListTraits scattered = list;
            scattered.host_contiguous = false;
            EXPECT_NE(choose_list_method(scattered, list_limits()).method, ListMethod::pipeline);
            ListLimits polite = list_limits();
            polite.spare_engine = true;
            EXPECT_EQ(choose_list_method(list, polite).method, ListMethod::kernel);
            ListLimits none = list_limits();
            none.of_pipeline = 0;
            EXPECT_NE(choose_list_method(list, none).method, ListMethod::pipeline);
            ListLimits few = list_limits();
            few.of_pipeline = 2;
            EXPECT_EQ(choose_list_method(list, few).blocks, 2U);
        }
        // The start and the end of a pipeline take longer than a kernel for a few pieces.
        EXPECT_EQ(choose_list_method(list_traits(path, kKiB, 256), list_limits()).method,
                  ListMethod::kernel);
        // But they are shared by all parts of a long list.
        EXPECT_EQ(choose_list_method(list_traits(path, kKiB, 2048), list_limits(256 * kMiB)).method,
                  ListMethod::pipeline);
        // A chunk does not hold such a piece.
        EXPECT_EQ(choose_list_method(list_traits(path, 8 * kMiB, 64), list_limits()).method,
                  ListMethod::batch);
        // Tables would be longer than the data.
        EXPECT_EQ(choose_list_method(list_traits(path, 8, 4 * kMiB), list_limits()).method,
                  ListMethod::batch);
    }
    EXPECT_EQ(
        choose_list_method(list_traits(ListPath::within_gpu, kKiB, 1 << 18), list_limits()).method,
        ListMethod::kernel);
}

TEST(ListPipelines, ReadTheSideOfTheHost) {
    const std::vector<Piece> pieces{{address(0x1000), address(0x9004), 48},
                                    {address(0x1030), address(0x9804), 32},
                                    {address(0x1050), address(0x9904), 16}};
    const ListTraits to_host = traits_of(pieces, ListPath::to_host);
    EXPECT_TRUE(to_host.host_contiguous);
    EXPECT_EQ(to_host.gpu_access, 4U) << "of the sources, which are on the GPU";
    EXPECT_EQ(to_host.pipeline_entries(), 96U / 16);
    const ListTraits from_host = traits_of(pieces, ListPath::from_host);
    EXPECT_FALSE(from_host.host_contiguous);
    EXPECT_EQ(from_host.gpu_access, 16U);
    EXPECT_FALSE(traits_of(pieces, ListPath::within_gpu).host_contiguous);
    EXPECT_FALSE(is_contiguous({}, ListSide::to));
    const std::vector<Piece> backwards{{address(0x1030), address(0x9000), 48},
                                       {address(0x1000), address(0x9800), 48}};
    EXPECT_FALSE(traits_of(backwards, ListPath::to_host).host_contiguous);
}

class PipelinesOnFake : public test::OnFake {};

std::vector<std::size_t> order_of_blocks(std::size_t count, std::size_t slots,
                                         std::mt19937& random) {
    std::vector<std::size_t> order(slots);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random);
    order.resize(count);
    return order;
}

// Any lengths, alignments and chunks, in both directions in turn: each byte arrives, and no other
// is changed.
TEST_F(PipelinesOnFake, BringEveryByteAndTouchNoOther) {
    fake::configure("latency=0;event=0;h2d=200;d2h=200;d2d=500");
    std::mt19937 random(20261126);
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
    constexpr std::size_t kBytes = 96 * kKiB;
    const PipelineShape shape{.chunk = 16 * kKiB, .slots = 2, .blocks = 2};
    const gpu::Stream stream(0);
    Budget budget(shape.bytes());
    ASSERT_TRUE(budget.take(shape.bytes()));
    OwnPipeline pipeline(0, shape, BudgetShare(budget, shape.bytes()));
    const gpu::DeviceBuffer device(0, kBytes);
    const gpu::DeviceBuffer table(0, kBytes * sizeof(std::size_t));
    const gpu::HostBuffer host(kBytes, gpu::HostUse::portable, 0);
    for (std::size_t number = 0; number < 200 / test::case_stride(); ++number) {
        const std::size_t run = pick(3) == 0 ? 1 + pick(100) : 16 * (1 + pick(100));
        const std::size_t shift = pick(2) * pick(17);
        const std::size_t slots = (kBytes - shift) / run;
        const std::size_t count = 1 + pick(slots);
        std::vector<std::size_t> offsets = order_of_blocks(count, slots, random);
        for (std::size_t& offset : offsets) offset *= run;
        gpu::copy_sync(table.data(), offsets.data(), count * sizeof(std::size_t), 0);
        const bool to_host = pick(2) == 0;
        const bool regular = pick(4) == 0;
        Runs runs{.data = device.data() + shift,
                  .run = run,
                  .count = count,
                  .pitch = run,
                  .offsets = reinterpret_cast<const std::size_t*>(table.data()),
                  .bits = run};
        if (regular) {
            runs.offsets = nullptr;
            for (std::size_t n = 0; n < count; ++n) offsets[n] = n * run;
        }
        const auto source = test::sequence(kBytes, static_cast<unsigned>(number));
        std::vector<std::byte> expected(kBytes, std::byte{0x5A});
        std::byte* const target = to_host ? host.data() : device.data();
        test::copy_bytes(to_host ? device.data() : host.data(), source.data(), kBytes);
        test::copy_bytes(target, expected.data(), kBytes);
        const std::size_t host_at = pick(2) * pick(7);
        const std::size_t fits = std::min(count, (kBytes - host_at) / run);
        runs.count = fits;
        for (std::size_t n = 0; n < fits; ++n) {
            const std::size_t on_host = host_at + n * run;
            const std::size_t on_gpu = shift + offsets[n];
            test::copy_bytes(expected.data() + (to_host ? on_host : on_gpu),
                             source.data() + (to_host ? on_gpu : on_host), run);
        }
        const std::size_t chunk = 1 + pick(2 * shape.chunk);
        const auto blocks = static_cast<unsigned>(1 + pick(3));
        pipeline->start_after(stream, fits * run, pick(4));
        if (to_host) {
            pipeline->gather(host.data() + host_at, runs, chunk, blocks);
        } else {
            // All at once, or in parts that meet within the chunks that are loaded.
            const std::size_t first = pick(2) == 0 ? fits : pick(fits + 1);
            if (first < fits) pipeline->load(host.data() + host_at, fits * run, run, chunk);
            for (const auto& [at, some] :
                 {std::pair{std::size_t{0}, first}, {first, fits - first}}) {
                if (some == 0) continue;
                pipeline->scatter(runs.part(at, some), host.data() + host_at + at * run, chunk,
                                  blocks);
            }
            EXPECT_FALSE(pipeline->loads());
        }
        pipeline->finish_before(stream);
        stream.synchronize();
        EXPECT_TRUE(pipeline->done());
        ASSERT_TRUE(test::same_bytes(target, expected.data(), kBytes))
            << "case " << number << ": " << fits << " runs of " << run
            << (to_host ? " to the host" : " from the host");
    }
}

// Blocks of a GPU that a request has, in a contiguous buffer of the host.
struct BlockPool {
    BlockPool(std::size_t block_bytes, std::size_t block_count, std::size_t gap = 0)
        : block(block_bytes),
          count(block_count),
          stride(block_bytes + gap),
          device(0, 2 * block_count * stride),
          host(block_count * block_bytes, gpu::HostUse::portable, 0),
          on_host(block_count),
          on_gpu(block_count) {
        std::iota(on_host.begin(), on_host.end(), std::int64_t{0});
        std::mt19937 random(3);
        const auto order = order_of_blocks(count, 2 * count, random);
        std::ranges::transform(order, on_gpu.begin(),
                               [](std::size_t n) { return static_cast<std::int64_t>(n); });
    }
    void save(waywiser::Context& context, const gpu::Stream& stream) const {
        context.copy_blocks({host.data(), block, count}, {device.data(), stride, 2 * count}, block,
                            on_host, on_gpu, stream.handle());
    }
    void load(waywiser::Context& context, const gpu::Stream& stream) const {
        context.copy_blocks({device.data(), stride, 2 * count}, {host.data(), block, count}, block,
                            on_gpu, on_host, stream.handle());
    }
    [[nodiscard]] bool equal() const {
        for (std::size_t n = 0; n < count; ++n) {
            if (!test::same_bytes(host.data() + n * block,
                                  device.data() + static_cast<std::size_t>(on_gpu[n]) * stride,
                                  block)) {
                return false;
            }
        }
        return true;
    }
    void fill(std::byte* data, std::size_t bytes, unsigned seed) const {
        const auto random = test::sequence(bytes, seed);
        test::copy_bytes(data, random.data(), bytes);
    }
    void fill_host(unsigned seed) const { fill(host.data(), host.bytes(), seed); }
    void fill_device(unsigned seed) const { fill(device.data(), device.bytes(), seed); }

    std::size_t block, count, stride;
    gpu::DeviceBuffer device;
    gpu::HostBuffer host;
    std::vector<std::int64_t> on_host, on_gpu;
};

TEST_F(PipelinesOnFake, MoveBlocksOfAContext) {
    waywiser::Context context({.threads = 2, .pinned_bytes = 64 * kMiB});
    const gpu::Stream stream(0);
    for (const std::size_t block : {kKiB, 4 * kKiB, 20 * kKiB + 16}) {
        const BlockPool pool(block, 16 * kMiB / block, block == kKiB ? 0 : 32);
        pool.fill_host(1);
        fake::configure("");
        pool.load(context, stream);
        stream.synchronize();
        // A kernel and a copy for each chunk, instead of a copy for each piece.
        EXPECT_GE(fake::counts().launches, 4U) << block;
        EXPECT_GE(fake::counts().copies, 5U) << block;
        EXPECT_LE(fake::counts().copies, 40U) << block;
        EXPECT_TRUE(pool.equal()) << block;
        pool.fill_device(2);
        fake::configure("");
        pool.save(context, stream);
        stream.synchronize();
        EXPECT_GE(fake::counts().launches, 4U) << block;
        EXPECT_GE(fake::counts().copies, 5U) << block;
        EXPECT_TRUE(pool.equal()) << block;
    }
}

// While the destination's index is checked, bytes are on their way, but not to the destination.
TEST_F(PipelinesOnFake, WriteNothingIfAnIndexIsWrong) {
    waywiser::Context context({.threads = 2, .pinned_bytes = 64 * kMiB});
    const gpu::Stream stream(0);
    BlockPool pool(8 * kKiB, 4096);
    pool.fill_host(1);
    pool.fill_device(2);
    const std::vector<std::byte> device(pool.device.data(),
                                        pool.device.data() + pool.device.bytes());
    const std::vector<std::byte> host(pool.host.data(), pool.host.data() + pool.host.bytes());
    const std::vector<std::int64_t> good = pool.on_gpu;
    const std::vector<std::int64_t> in_order = pool.on_host;
    const auto rejects = [&](bool load, std::vector<std::int64_t>& index, std::int64_t wrong) {
        index.at(4000) = wrong;
        fake::configure("");
        EXPECT_THROW(load ? pool.load(context, stream) : pool.save(context, stream), TransferError);
        stream.synchronize();
        EXPECT_EQ(fake::counts().launches, 0U);
        EXPECT_LE(fake::counts().copies, load ? 3U : 0U);
        EXPECT_TRUE(test::same_bytes(pool.device.data(), device.data(), device.size()));
        EXPECT_TRUE(test::same_bytes(pool.host.data(), host.data(), host.size()));
        pool.on_gpu = good;
        pool.on_host = in_order;
    };
    for (const std::int64_t wrong : {good[7], std::int64_t{-1}, std::int64_t{8192}}) {
        rejects(true, pool.on_gpu, wrong);
        if (wrong != good[7]) rejects(false, pool.on_gpu, wrong);
    }
    for (const std::int64_t wrong : {in_order[7], std::int64_t{-1}, std::int64_t{4096}}) {
        rejects(false, pool.on_host, wrong);
        if (wrong != in_order[7]) rejects(true, pool.on_host, wrong);
    }
    pool.load(context, stream);
    stream.synchronize();
    EXPECT_TRUE(pool.equal()) << "what was loaded is used by no later list";
}

// Lists in the order of their stream, without a wait of the host between them.
TEST_F(PipelinesOnFake, FollowTheirStream) {
    waywiser::Context context({.threads = 2, .pinned_bytes = 64 * kMiB});
    const gpu::Stream stream(0);
    const BlockPool first(16 * kKiB, 1088);
    const BlockPool second(16 * kKiB, 1088);
    first.fill_host(1);
    for (int round = 0; round < 3; ++round) {
        first.load(context, stream);
        first.save(context, stream);
        second.save(context, stream);
        // What is saved is what is there when the stream gets there.
        gpu::fill_async(second.device.data(), static_cast<unsigned char>(round),
                        second.device.bytes(), stream);
        second.save(context, stream);
    }
    stream.synchronize();
    EXPECT_TRUE(first.equal());
    EXPECT_TRUE(second.equal());
    EXPECT_EQ(second.host.data()[0], std::byte{2});
}

TEST_F(PipelinesOnFake, NeverWaitForAnotherStream) {
    waywiser::Context context({.threads = 2, .pinned_bytes = 64 * kMiB});
    constexpr std::size_t kStreams = 6;  // more than there are pipelines
    std::vector<gpu::Stream> held;
    std::vector<BlockPool> pools;
    for (std::size_t i = 0; i < kStreams; ++i) {
        held.emplace_back(0);
        pools.emplace_back(8 * kKiB, 1280);
        pools.back().fill_device(static_cast<unsigned>(i));
    }
    const gpu::Stream free(0);
    const BlockPool other(8 * kKiB, 1280);
    other.fill_device(9);
    {
        gpu::Gate gate(0);
        for (std::size_t i = 0; i < kStreams; ++i) {
            gate.close(held[i]);
            pools[i].save(context, held[i]);
        }
        other.save(context, free);
        free.synchronize();
        EXPECT_TRUE(other.equal());
        EXPECT_FALSE(pools[0].equal()) << "the gate is open";
        gate.open();
        for (const gpu::Stream& stream : held) stream.synchronize();
    }
    for (const BlockPool& pool : pools) EXPECT_TRUE(pool.equal());
}

TEST_F(PipelinesOnFake, GoAroundWhatFails) {
    const std::vector<const char*> faults{"fail=launch@3", "fail=launch@1", "fail=event@2",
                                          "fail=event@5",  "oom_at=1+",     "fail=alloc",
                                          "fail=copy@2"};
    for (const char* fault : test::few_of(faults)) {
        for (const bool to_host : {false, true}) {
            fake::reset();
            const BlockPool pool(16 * kKiB, 1088);
            const gpu::Stream stream(0);
            {
                waywiser::Context context({.threads = 2, .pinned_bytes = 64 * kMiB});
                pool.fill_host(1);
                pool.fill_device(2);
                const auto move = [&] {
                    if (to_host) return pool.save(context, stream);
                    pool.load(context, stream);
                };
                fake::configure(fault);
                bool failed = false;
                try {
                    move();
                } catch (const TransferError& error) {
                    failed = true;
                    EXPECT_EQ(error.status(), WAYWISER_GPU) << fault;
                }
                fake::reset();
                if (failed) move();
                stream.synchronize();
                EXPECT_TRUE(pool.equal()) << fault << (to_host ? " to the host" : " from the host");
                if (std::string(fault).starts_with("oom")) {
                    EXPECT_FALSE(failed) << "other methods need no memory";
                }
            }
        }
    }
}

TEST_F(PipelinesOnFake, GiveEverythingBack) {
    const auto before = fake::live();
    {
        waywiser::Context context({.threads = 2, .pinned_bytes = 64 * kMiB});
        const BlockPool pool(16 * kKiB, 1088);
        const gpu::Stream stream(0);
        pool.load(context, stream);
        stream.synchronize();
        EXPECT_GT(fake::live().device_buffers, before.device_buffers + 1);
    }
    EXPECT_EQ(fake::live(), before);
}

}  // namespace
}  // namespace waywiser::transfer
