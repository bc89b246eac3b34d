#include "host/cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "host/affinity.hpp"
#include "host/clock.hpp"
#include "support/sanitizer.hpp"

namespace waywiser::host {
namespace {

constexpr std::size_t kLine = 64;
// Fits any core's private cache of today, but takes much longer than a timer's tick.
constexpr std::size_t kBytes = std::size_t{128} << 10;

// A ring of lines in random order, which defeats prefetchers: each contains the next one's number.
std::vector<std::uint64_t> ring() {
    constexpr std::size_t kStep = kLine / sizeof(std::uint64_t);
    std::vector<std::size_t> order(kBytes / kLine);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed): the same ring each time
    std::shuffle(order.begin() + 1, order.end(), random);
    std::vector<std::uint64_t> words(kBytes / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < order.size(); ++i) {
        words[order[i] * kStep] = order[(i + 1) % order.size()] * kStep;
    }
    return words;
}

// Seconds per line of one round.
double walk(const std::vector<std::uint64_t>& words) {
    const double start = now();
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < kBytes / kLine; ++i) {
        at = *static_cast<const volatile std::uint64_t*>(&words[at]);
    }
    const double seconds = now() - start;
    EXPECT_EQ(at, 0u);
    constexpr std::size_t kLines = kBytes / kLine;
    return seconds / static_cast<double>(kLines);
}

// The fastest of several, since any disturbance makes a walk slower.
template <class Before>
double fastest_walk(const std::vector<std::uint64_t>& words, Before before) {
    double best = 1;
    for (int i = 0; i < 40; ++i) {
        before();
        best = std::min(best, walk(words));
    }
    return best;
}

TEST(Flush, MakesAWarmBufferCold) {
    if (test::sanitizer() != test::Sanitizer::none) {
        GTEST_SKIP() << "a sanitizer makes the calls between two loads too slow";
    }
    if (flush_instruction().empty()) GTEST_SKIP() << "no instruction flushes this CPU's caches";
    const auto words = ring();
    const double warm = fastest_walk(words, [&] { walk(words); });
    const double cold = fastest_walk(words, [&] {
        walk(words);
        ASSERT_TRUE(flush(words.data(), kBytes, allowed_cpus()));
    });
    const double spared = fastest_walk(words, [&] {
        walk(words);
        std::vector<char> other(kBytes);
        ASSERT_TRUE(flush(other.data(), kBytes, allowed_cpus()));
    });
    EXPECT_GT(cold, 3 * warm) << "flushed lines come as fast as cached ones";
    EXPECT_LT(spared, cold / 2) << "flushing another buffer flushed this one";
}

TEST(Flush, KeepsTheBytes) {
    if (flush_instruction().empty()) GTEST_SKIP() << "no instruction flushes this CPU's caches";
    std::vector<unsigned char> bytes((std::size_t{9} << 20) + 13);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 31);
    ASSERT_TRUE(flush(bytes.data() + 5, bytes.size() - 7, allowed_cpus()));
    dirty(bytes.data() + 3, bytes.size() - 3, allowed_cpus());
    ASSERT_TRUE(flush(bytes.data(), bytes.size(), {}));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        ASSERT_EQ(bytes[i], static_cast<unsigned char>(i * 31)) << "at " << i;
    }
}

// The last line of an unaligned range is easily missed.
TEST(Flush, ReachesEveryLineOfAnUnalignedRange) {
    if (test::sanitizer() != test::Sanitizer::none) {
        GTEST_SKIP() << "a sanitizer makes the calls between two loads too slow";
    }
    if (flush_instruction().empty()) GTEST_SKIP() << "no instruction flushes this CPU's caches";
    alignas(4096) static volatile char lines[3 * kLine];
    const auto median = [](const auto& seconds) {
        std::vector<double> all(201);
        for (double& one : all) one = seconds();
        std::ranges::nth_element(all, all.begin() + 100);
        return all[100];
    };
    const auto load = [&](std::size_t line) {
        return median([line] {
            for (std::size_t l = 0; l < 3; ++l) lines[l * kLine] = 1;
            flush(const_cast<const char*>(lines) + kLine - 1, kLine + 2, {});
            const double start = now();
            static_cast<void>(lines[line * kLine]);
            return now() - start;
        });
    };
    const double clock = median([] {
        const double start = now();
        return now() - start;
    });
    constexpr double kMemory = 30e-9;  // no memory is faster, no private cache slower
    for (const std::size_t line : {0u, 1u, 2u}) {
        EXPECT_GT(load(line) - clock, kMemory) << "line " << line << " was not flushed";
    }
}

TEST(Dirty, KeepsTheBytes) {
    std::vector<unsigned char> bytes((std::size_t{9} << 20) + 13, 0x3C);
    dirty(bytes.data(), bytes.size(), allowed_cpus());
    EXPECT_TRUE(std::ranges::all_of(bytes, [](unsigned char b) { return b == 0x3C; }));
}

TEST(LineBytes, IsAPowerOfTwoThatCpusHave) {
    const std::size_t line = line_bytes();
    EXPECT_EQ(line & (line - 1), 0u);
    EXPECT_GE(line, 16u);
    EXPECT_LE(line, 256u);
}

}  // namespace
}  // namespace waywiser::host
