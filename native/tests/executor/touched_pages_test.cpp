// The pages of a range that are touched.
#include "executor/touched_pages.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace waywiser {
namespace {

constexpr std::size_t kPage = 4096;

// The touched offsets, in order.
std::vector<std::size_t> touched(std::uintptr_t at, std::size_t bytes, std::size_t chunk,
                                 std::size_t stride) {
    const auto* data = reinterpret_cast<const std::byte*>(at);
    const TouchedPages touches = TouchedPages::of(data, bytes, kPage, chunk, stride);
    std::vector<std::size_t> offsets;
    for (std::size_t n = 0; n < touches.chunks(); ++n) {
        for (std::size_t page = touches.first_page(n); page < touches.last_page(n); ++page) {
            offsets.push_back(touches.offset(page));
        }
    }
    return offsets;
}

using Offsets = std::vector<std::size_t>;

TEST(TouchedPages, MeetEveryPageOfADenseRangeOnce) {
    EXPECT_EQ(touched(8 * kPage, 3 * kPage, kPage, kPage), (Offsets{0, kPage, 2 * kPage}));
    EXPECT_EQ(touched(8 * kPage, 3 * kPage + 1, kPage, kPage),
              (Offsets{0, kPage, 2 * kPage, 3 * kPage}));
}

TEST(TouchedPages, MeetTheOnePageOfARangeThatIsShorter) {
    EXPECT_EQ(touched(8 * kPage, 1, kPage, kPage), Offsets{0});
    EXPECT_EQ(touched(8 * kPage + 100, 8, kPage, kPage), Offsets{0});
    EXPECT_EQ(touched(8 * kPage, 0, kPage, kPage), Offsets{});
}

// A range that starts within a page touches one more page than its length suggests.
TEST(TouchedPages, MeetThePagesOfARangeThatStartsWithinOne) {
    EXPECT_EQ(touched(8 * kPage + 4000, 200, kPage, kPage), (Offsets{0, 96}));
    EXPECT_EQ(touched(8 * kPage + 1, 2 * kPage, kPage, kPage),
              (Offsets{0, kPage - 1, 2 * kPage - 1}));
}

TEST(TouchedPages, SkipWhatIsBetweenChunks) {
    EXPECT_EQ(touched(0, 9 * kPage, kPage, 4 * kPage), (Offsets{0, 4 * kPage, 8 * kPage}));
    EXPECT_EQ(touched(0, 9 * kPage, 2 * kPage, 4 * kPage),
              (Offsets{0, kPage, 4 * kPage, 5 * kPage, 8 * kPage}));
    EXPECT_EQ(touched(0, 2 * kPage, kPage, std::size_t{2} << 20), Offsets{0});
}

TEST(TouchedPages, TakeChunksAndStridesInWholePages) {
    EXPECT_EQ(touched(0, 6 * kPage, 1, 2 * kPage - 1), (Offsets{0, 2 * kPage, 4 * kPage}));
    EXPECT_EQ(touched(0, 4 * kPage, kPage + 1, kPage), (Offsets{0, kPage, 2 * kPage, 3 * kPage}));
}

// A chunk that is longer than its stride would be touched twice: then all is dense.
TEST(TouchedPages, NeverMeetAPageTwice) {
    EXPECT_EQ(touched(0, 5 * kPage, 2 * kPage, kPage),
              (Offsets{0, kPage, 2 * kPage, 3 * kPage, 4 * kPage}));
}

}  // namespace
}  // namespace waywiser
