// How a job is cut into parts for slots, and how those are counted.
#include <gtest/gtest.h>

#include <vector>

#include "transfer/job.hpp"
#include "units.hpp"

namespace waywiser::transfer {
namespace {

class Divided final : public Job {
public:
    using Job::ends_at;
    using Job::Job;
};

std::vector<Part> take_all(Job& job) {
    std::vector<Part> parts;
    while (!job.has_all_parts()) parts.push_back(job.take_part());
    return parts;
}

TEST(Divisions, CoverEveryByteOnceAndBreakAtMultiplesOfASlot) {
    for (const std::size_t bytes : {std::size_t{1}, 64 * kKiB, 9 * kMiB + 5}) {
        for (const std::size_t first : {std::size_t{0}, std::size_t{4097}}) {
            Divided job(bytes, {.slot = kMiB, .piece = 64 * kKiB, .first = first}, CpuWork::fills);
            std::size_t at = 0;
            for (const Part& part : take_all(job)) {
                EXPECT_EQ(part.at, at);
                EXPECT_GT(part.bytes, 0U);
                EXPECT_LE(part.bytes, kMiB);
                at += part.bytes;
                EXPECT_TRUE(at == bytes || (first + at) % kMiB == 0) << at;
            }
            EXPECT_EQ(at, bytes);
            EXPECT_EQ(job.take_part().bytes, 0U);
        }
    }
}

TEST(Divisions, EndWhereAFileEnds) {
    Divided job(10 * kMiB, {.slot = kMiB, .piece = kMiB}, CpuWork::all);
    static_cast<void>(job.take_part());
    job.ends_at(kMiB + 7);
    EXPECT_FALSE(job.has_all_parts());
    const Part last = job.take_part();
    EXPECT_EQ(last.at, kMiB);
    EXPECT_TRUE(job.has_all_parts());
    EXPECT_EQ(job.moved_or_expected(), kMiB + 7);
    EXPECT_EQ(job.before_end(last), 7U);
    EXPECT_EQ(job.before_end({.at = 5 * kMiB, .bytes = kMiB}), 0U);
}

TEST(Divisions, AJobIsOverWhenAllItsPartsAreComplete) {
    Divided job(3 * kMiB, {.slot = kMiB, .piece = kMiB}, CpuWork::all);
    const std::vector<Part> parts = take_all(job);
    EXPECT_EQ(parts.size(), 3U);
    for (const Part& part : parts) {
        EXPECT_FALSE(job.is_over());
        EXPECT_GT(job.useful_threads(), 0U);
        job.note_complete(part.bytes, part.bytes);
    }
    EXPECT_TRUE(job.is_over());
    EXPECT_EQ(job.moved(), 3 * kMiB);
    EXPECT_EQ(job.useful_threads(), 1U);
    EXPECT_TRUE(job.begin_end());
    EXPECT_EQ(job.useful_threads(), 0U);
    EXPECT_FALSE(job.begin_end());
}

TEST(Divisions, AJobThatIsGivenUpHasNothingLeft) {
    Divided job(3 * kMiB, {.slot = kMiB, .piece = kMiB}, CpuWork::all);
    job.note_complete(job.take_part().bytes, kMiB);
    job.fail(std::make_exception_ptr(std::runtime_error("no")));
    EXPECT_TRUE(job.has_all_parts());
    EXPECT_TRUE(job.is_over());
    EXPECT_EQ(job.moved(), kMiB);
    EXPECT_EQ(job.moved_or_expected(), 0U);
    EXPECT_EQ(job.take_part().bytes, 0U);
}

}  // namespace
}  // namespace waywiser::transfer
