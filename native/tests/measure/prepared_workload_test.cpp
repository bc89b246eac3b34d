#include "measure/prepared_workload.hpp"
#include "transfer/engine.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance.hpp"

namespace waywiser::measure {
namespace {

std::vector<int> range(int first, int end) {
    std::vector<int> cpus;
    for (int cpu = first; cpu < end; ++cpu) cpus.push_back(cpu);
    return cpus;
}

Transfer copy(int node, const char* threads) {
    const Memory memory{"pageable", {Place::Kind::numa, node, {}}, {}};
    return {{memory, memory, "cpu"}, 4096, {{"threads", threads}}};
}

// Threads on one node take no CPU from transfers of another node.
TEST(PreparedWorkload, SharesOutTheCpusOfEachNodeByItself) {
    const Machine machine{{{0, range(0, 8)}, {1, range(8, 16)}}, {}};
    const Request request{.transfers = {copy(0, "3"), copy(1, "6"), copy(0, "3")}, .rule = {}};
    BufferPool pool(machine, std::size_t{1} << 20);
    Streams streams;
    const auto engine_owner = transfer::Engine::make(machine, {});
    transfer::Engine& engine = *engine_owner;
    const PreparedWorkload prepared(request, machine, pool, streams, engine);
    ASSERT_EQ(prepared.parts().size(), 3u);
    EXPECT_EQ(prepared.parts()[0].cpu, std::vector<int>{1});
    EXPECT_EQ(prepared.parts()[1].cpu, std::vector<int>{9});
    EXPECT_EQ(prepared.parts()[2].cpu, std::vector<int>{4});
}

class PreparedCopies : public ::testing::Test {
protected:
    static Request copies(std::size_t count, Cache cache) {
        const int node = test::this_machine().numa.front().index;
        return {
            .transfers = std::vector<Transfer>(count, copy(node, "1")), .cache = cache, .rule = {}};
    }
    static void move(const Part& to, std::size_t to_slice, const Part& from, std::size_t slice) {
        std::memcpy(to.destination.data + to_slice * to.stride,
                    from.source.data + slice * from.stride, from.source.bytes);
    }

    const Machine machine = test::this_machine();
    BufferPool pool{machine, std::size_t{64} << 20};
    Streams streams;
};

TEST_F(PreparedCopies, FindsBytesOfAnotherTransfer) {
    const Request request = copies(2, Cache::warm);
    const auto engine_owner = transfer::Engine::make(machine, {});
    transfer::Engine& engine = *engine_owner;
    PreparedWorkload prepared(request, machine, pool, streams, engine);
    const Part& one = prepared.parts()[0];
    const Part& other = prepared.parts()[1];
    prepared.fill();
    EXPECT_THROW(prepared.check(1), WrongBytes) << "nothing has arrived yet";
    move(one, 0, one, 0);
    move(other, 0, other, 0);
    EXPECT_NO_THROW(prepared.check(1));
    move(one, 0, other, 0);
    move(other, 0, one, 0);
    EXPECT_THROW(prepared.check(1), WrongBytes) << "each has the bytes of the other";
}

TEST_F(PreparedCopies, FindsBytesOfAnotherSlice) {
    const Request request = copies(1, Cache::flushed);
    const auto engine_owner = transfer::Engine::make(machine, {});
    transfer::Engine& engine = *engine_owner;
    PreparedWorkload prepared(request, machine, pool, streams, engine);
    const Part& part = prepared.parts().front();
    const std::size_t last = prepared.most_repetitions() - 1;
    ASSERT_GE(last, 1u);
    prepared.fill();
    move(part, 0, part, 0);
    EXPECT_NO_THROW(prepared.check(1));
    EXPECT_THROW(prepared.check(last + 1), WrongBytes) << "nothing has arrived in the last";
    move(part, last, part, 0);
    EXPECT_THROW(prepared.check(last + 1), WrongBytes) << "the bytes of the first are in the last";
    move(part, last, part, last);
    EXPECT_NO_THROW(prepared.check(last + 1));
    EXPECT_NO_THROW(prepared.check(1000 * last)) << "further repetitions take the slices in turn";
}

TEST_F(PreparedCopies, KnowsWhatTransfersShare) {
    Request request = copies(2, Cache::flushed);
    request.shared = true;
    const auto engine_owner = transfer::Engine::make(machine, {});
    transfer::Engine& engine = *engine_owner;
    PreparedWorkload prepared(request, machine, pool, streams, engine);
    prepared.fill();
    for (const Part& part : prepared.parts()) move(part, 0, part, 0);
    EXPECT_NO_THROW(prepared.check(1));
}

TEST_F(PreparedCopies, RefillsEachDestinationAndFindsADamagedSource) {
    for (const Cache cache : {Cache::warm, Cache::flushed}) {
        const Request request = copies(2, cache);
        const auto engine_owner = transfer::Engine::make(machine, {});
        PreparedWorkload prepared(request, machine, pool, streams, *engine_owner);
        const std::size_t slices = prepared.parts().front().slices;
        const auto move_all = [&] {
            for (const Part& part : prepared.parts()) {
                for (std::size_t slice = 0; slice < slices; ++slice) move(part, slice, part, slice);
            }
        };
        prepared.fill();
        move_all();
        EXPECT_NO_THROW(prepared.check(slices));
        prepared.refill();
        EXPECT_THROW(prepared.check(1), WrongBytes) << "nothing has arrived again";
        EXPECT_THROW(prepared.check(slices), WrongBytes);
        move_all();
        EXPECT_NO_THROW(prepared.check(slices));
        const Part& damaged = prepared.parts().back();
        damaged.source.data[(slices - 1) * damaged.stride + 17] ^= std::byte{1};
        prepared.refill();
        move_all();
        EXPECT_THROW(prepared.check(slices), WrongBytes) << "the source has changed";
    }
}

TEST_F(PreparedCopies, RefillsTheSourcesOfBuffersThatAreBoth) {
    Request request = copies(2, Cache::warm);
    request.shared = true;
    const auto engine_owner = transfer::Engine::make(machine, {});
    PreparedWorkload prepared(request, machine, pool, streams, *engine_owner);
    prepared.fill();
    std::byte* const source = prepared.parts().front().source.data;
    const std::byte first = *source;
    *source = ~first;
    prepared.refill();
    EXPECT_EQ(*source, first);
}

}  // namespace
}  // namespace waywiser::measure
