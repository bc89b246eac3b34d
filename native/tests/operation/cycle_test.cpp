#include "operation/cycle.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace waywiser {
namespace {

constexpr std::size_t kCells[] = {2, 3, 4, 5, 7, 8, 31, 64, 100, 127, 128, 129, 1000, 4096, 65537};

TEST(OrderTest, VisitsEachPositionOnce) {
    for (const std::size_t cells : kCells) {
        const Order order(cells);
        std::vector<bool> seen(cells, false);
        for (std::size_t i = 0; i < cells; ++i) {
            const std::size_t at = order(i);
            ASSERT_LT(at, cells);
            EXPECT_FALSE(seen[at]) << at << " twice among " << cells;
            seen[at] = true;
        }
    }
}

TEST(OrderTest, IsShuffled) {
    constexpr std::size_t kMany = 1 << 16;
    const Order order(kMany);
    std::set<std::size_t> strides;
    std::size_t neighbours = 0;
    for (std::size_t i = 0; i + 1 < kMany; ++i) {
        const auto stride = order(i + 1) - order(i);
        strides.insert(stride);
        neighbours += stride + 16 < 32;  // within what a prefetcher looks ahead, modulo wrapping
    }
    EXPECT_GT(strides.size(), kMany / 4) << "strides repeat: a prefetcher could learn them";
    EXPECT_LT(neighbours, kMany / 100);
}

TEST(CycleTest, LeadsThroughEveryCellAndBack) {
    for (const std::size_t cells : kCells) {
        constexpr std::size_t kApart = 64;
        std::vector<std::byte> memory(cells * kApart);
        const Cycle cycle{memory.data(), kApart, Order(cells)};
        for (std::size_t i = cells; i-- > 0;) cycle.link(i);  // in any order
        const Cell* const first = cycle.cell(0);
        std::set<const Cell*> seen;
        for (const Cell* at = first; seen.insert(at).second; at = at->next) {
            const auto offset =
                static_cast<std::size_t>(reinterpret_cast<const std::byte*>(at) - memory.data());
            ASSERT_LT(offset, memory.size());
            EXPECT_EQ(offset % kApart, 0u);
        }
        EXPECT_EQ(seen.size(), cells);
        EXPECT_EQ(follow(first, cells), first);
        EXPECT_NE(follow(first, cells - 1), first);
        EXPECT_EQ(follow(first, 0), first);
    }
}

}  // namespace
}  // namespace waywiser
