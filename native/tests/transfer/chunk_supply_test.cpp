// How a job is divided into chunks, and how those are counted.
#include "transfer/chunk_supply.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "transfer/job.hpp"
#include "units.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kThreads = 4;

struct Settings {
    std::size_t routes = 1;
    std::size_t most_chunks = 2;
    bool fills = false;
    bool two_links = false;
};

class Divided final : public Job {
public:
    Divided(std::size_t bytes, std::size_t first, const Settings& settings)
        : Job(bytes, kMiB, 64 * kKiB, first) {
        routes_.resize(settings.routes, Route{.most_chunks = settings.most_chunks});
        fills_ = settings.fills;
        two_links_ = settings.two_links;
        open(nullptr);
    }
    using Job::ends_at;
};

// Takes all chunks, each of which is complete before the next.
std::vector<Chunk> take_all(Job& job) {
    std::vector<Chunk> chunks;
    ChunkSupply& supply = job.supply();
    while (!supply.exhausted()) {
        chunks.push_back(supply.take(supply.free_route().value(), kThreads));
        supply.submitted(1);
        supply.completed(chunks.back());
    }
    return chunks;
}

TEST(ChunkSupplies, CoverEveryByteOnceAndBreakAtMultiplesOfTheLeastChunk) {
    for (const std::size_t bytes : {std::size_t{1}, 64 * kKiB, 9 * kMiB + 5}) {
        for (const std::size_t first : {std::size_t{0}, std::size_t{4097}}) {
            for (const int kind : {0, 1, 2}) {
                Divided job(bytes, first, {.fills = kind == 1, .two_links = kind == 2});
                std::size_t at = 0;
                for (const Chunk& chunk : take_all(job)) {
                    EXPECT_EQ(chunk.at, at);
                    EXPECT_GT(chunk.bytes, 0U);
                    EXPECT_LE(chunk.bytes, kMiB);
                    EXPECT_EQ(chunk.claimed, chunk.bytes);
                    at += chunk.bytes;
                    EXPECT_TRUE(at == bytes || (first + at) % (64 * kKiB) == 0) << at;
                }
                EXPECT_EQ(at, bytes);
                EXPECT_TRUE(job.supply().all_completed());
            }
        }
    }
}

TEST(ChunkSupplies, AreLargeFirstAndSmallAtTheEnd) {
    Divided job(64 * kMiB, 0, {});
    const auto chunks = take_all(job);
    EXPECT_EQ(chunks.front().bytes, kMiB);
    EXPECT_EQ(chunks.back().bytes, 64 * kKiB);
}

TEST(ChunkSupplies, GrowFromSmallOnesIfCpusFillThem) {
    Divided job(64 * kMiB, 0, {.fills = true});
    const auto chunks = take_all(job);
    EXPECT_EQ(chunks.front().bytes, 64 * kKiB);
    EXPECT_EQ(chunks[chunks.size() / 2].bytes, kMiB);
    EXPECT_EQ(chunks.back().bytes, 64 * kKiB);
}

TEST(ChunkSupplies, GiveAChunkAgainThatWasPutBack) {
    Divided job(2 * kMiB, 0, {.most_chunks = 8});
    ChunkSupply& supply = job.supply();
    const Chunk first = supply.take(0, kThreads);
    const Chunk second = supply.take(0, kThreads);
    supply.put_back(first);
    const Chunk again = supply.take(0, kThreads);
    EXPECT_EQ(again.at, first.at);
    EXPECT_EQ(again.bytes, first.bytes);
    EXPECT_EQ(supply.take(0, kThreads).at, second.at + second.bytes);
}

TEST(ChunkSupplies, TakeRoutesInTurnUpToTheirLimits) {
    Divided job(8 * kMiB, 0, {.routes = 2, .most_chunks = 1});
    ChunkSupply& supply = job.supply();
    ASSERT_EQ(supply.free_route(), 0U);
    const Chunk first = supply.take(0, kThreads);
    ASSERT_EQ(supply.free_route(), 1U);
    supply.take(1, kThreads);
    EXPECT_EQ(supply.free_route(), std::nullopt);
    supply.completed(first);
    EXPECT_EQ(supply.free_route(), 0U);
}

TEST(ChunkSupplies, KnowTheLastSubmissionAndTheLastEnd) {
    Divided job(128 * kKiB, 0, {});
    ChunkSupply& supply = job.supply();
    EXPECT_EQ(supply.most_left(), 2U);
    const Chunk first = supply.take(0, kThreads);
    EXPECT_FALSE(supply.submitted(1));  // the second is not taken
    const Chunk second = supply.take(0, kThreads);
    EXPECT_EQ(supply.most_left(), 0U);
    EXPECT_TRUE(supply.submitted(1));
    supply.completed(second);
    EXPECT_FALSE(supply.all_completed());
    supply.completed(first);
    EXPECT_TRUE(supply.all_completed());
}

TEST(ChunkSupplies, EndAtTheEndOfAShorterFileAndAfterAFailure) {
    Divided shorter(8 * kMiB, 0, {});
    shorter.supply().take(0, kThreads);
    shorter.ends_at(kMiB);
    EXPECT_TRUE(shorter.supply().exhausted());
    Divided failed(8 * kMiB, 0, {});
    failed.fail(std::make_exception_ptr(Cancelled("stopped")));
    EXPECT_TRUE(failed.supply().exhausted());
    EXPECT_EQ(failed.supply().most_left(), 0U);
}

}  // namespace
}  // namespace waywiser::transfer
