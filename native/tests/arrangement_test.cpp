#include "waywiser/arrangement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "conformance.hpp"

namespace waywiser {
namespace {

Transfer shaped(const Layout& layout, std::size_t bytes) {
    const Memory memory{"pageable", {Place::Kind::numa, 0, {}}, {}};
    return {{memory, memory, "cpu"}, bytes, {}, layout};
}

Layout list(Settings settings) { return {Layout::Kind::list, std::move(settings)}; }
Layout box(Settings settings) { return {Layout::Kind::box, std::move(settings)}; }

std::vector<std::size_t> starts(const Arrangement& arrangement) {
    std::vector<std::size_t> found;
    for (std::size_t n = 0; n < arrangement.count; ++n) found.push_back(arrangement.offset(n));
    return found;
}

// For every layout: all bytes are moved once, within the extent, and up to its end except for a
// box.
TEST(Arrangement, HoldsEveryByteOnceWithinItsExtent) {
    std::vector<test::Shaped> all = test::awkward_layouts();
    all.push_back({{}, 4099});
    for (const test::Shaped& requested : all) {
        for (const Side side : {Side::source, Side::destination}) {
            const Transfer transfer = shaped(requested.layout, requested.bytes);
            SCOPED_TRACE(transfer.text());
            const Arrangement arrangement = arrange(transfer, side);
            EXPECT_EQ(arrangement.kind, requested.layout.kind);
            EXPECT_EQ(arrangement.run * arrangement.count, requested.bytes);
            std::vector<std::size_t> sorted = starts(arrangement);
            std::ranges::sort(sorted);
            for (std::size_t n = 1; n < sorted.size(); ++n) {
                ASSERT_LE(sorted[n - 1] + arrangement.run, sorted[n]) << "runs overlap";
            }
            EXPECT_LE(sorted.back() + arrangement.run, arrangement.extent);
            if (arrangement.kind == Layout::Kind::box) {
                EXPECT_EQ(arrangement.extent % arrangement.plane, 0u)
                    << "an array has whole planes";
            } else {
                EXPECT_EQ(sorted.back() + arrangement.run, arrangement.extent);
            }
        }
    }
}

TEST(Arrangement, IsTheSameEveryTimeAndOtherOnEachSideOfAList) {
    const Transfer transfer = shaped(list({{"piece", "512"}}), 512UL * 1000);
    const auto source = starts(arrange(transfer, Side::source));
    EXPECT_EQ(source, starts(arrange(transfer, Side::source)));
    EXPECT_NE(source, starts(arrange(transfer, Side::destination)));
    EXPECT_FALSE(std::ranges::is_sorted(source));
    EXPECT_EQ(source[0], 238080u) << "shuffled in another order: series would not compare";
}

TEST(Arrangement, ScattersAListOverTwiceItsBytesOnTheSidesThatAreAsked) {
    constexpr std::size_t kPieces = 1000;
    for (const char* sides : {"both", "source", "destination"}) {
        const Transfer transfer =
            shaped(list({{"piece", "64"}, {"scattered", sides}}), 64 * kPieces);
        for (const Side side : {Side::source, Side::destination}) {
            const Arrangement arrangement = arrange(transfer, side);
            const std::string here = side == Side::source ? "source" : "destination";
            if (sides == std::string("both") || sides == here) {
                EXPECT_GT(arrangement.extent, 64 * kPieces * 19 / 10);
                EXPECT_LE(arrangement.extent, 64 * kPieces * 2);
            } else {
                EXPECT_EQ(arrangement.extent, 64 * kPieces);
                EXPECT_TRUE(std::ranges::is_sorted(arrangement.offsets));
            }
        }
    }
}

TEST(Arrangement, LaysABoxInRowsAndPlanes) {
    const Transfer transfer = shaped(
        box({{"width", "10"}, {"height", "3"}, {"pitch", "16"}, {"rows", "5"}}), 10UL * 3 * 2);
    const Arrangement arrangement = arrange(transfer, Side::source);
    EXPECT_EQ(starts(arrangement), (std::vector<std::size_t>{0, 16, 32, 80, 96, 112}));
    EXPECT_EQ(arrangement.extent, 160u);
    const Arrangement usual =
        arrange(shaped(box({{"width", "10"}, {"height", "3"}}), 60), Side::destination);
    EXPECT_EQ(starts(usual), (std::vector<std::size_t>{0, 20, 40, 120, 140, 160}));
}

TEST(Arrangement, OfContiguousBytesIsOneRun) {
    const Arrangement arrangement = arrange(shaped({}, 77), Side::source);
    EXPECT_EQ(arrangement.run, 77u);
    EXPECT_EQ(arrangement.count, 1u);
    EXPECT_EQ(arrangement.extent, 77u);
    EXPECT_EQ(arrangement.offset(0), 0u);
}

TEST(Arrangement, RejectsInvalidLayoutsInOneLine) {
    const std::vector<Transfer> senseless{
        shaped(list({}), 64),
        shaped(list({{"piece", "0"}}), 64),
        shaped(list({{"piece", "-4"}}), 64),
        shaped(list({{"piece", "many"}}), 64),
        shaped(list({{"piece", "16x"}}), 64),
        shaped(list({{"piece", "99999999999999999999"}}), 64),
        shaped(list({{"piece", "9999999999999"}}), 64),
        shaped(list({{"piece", "16"}, {"scattered", "neither"}}), 64),
        shaped(list({{"piece", "16"}, {"width", "4"}}), 64),
        shaped(list({{"piece", "16"}}), 65),
        shaped(box({}), 64),
        shaped(box({{"width", "8"}}), 64),
        shaped(box({{"height", "8"}}), 64),
        shaped(box({{"width", "8"}, {"height", "4"}, {"pitch", "7"}}), 64),
        shaped(box({{"width", "8"}, {"height", "4"}, {"rows", "3"}}), 64),
        shaped(box({{"width", "8"}, {"height", "4"}, {"depth", "2"}}), 64),
        shaped(box({{"width", "8"}, {"height", "4"}}), 48),
        shaped(box({{"width", "1000000000000"}, {"height", "1000000000000"}}), 64),
        shaped(box({{"width", "1"}, {"height", "1"}, {"pitch", "1048576"}, {"rows", "1048576"}}),
               std::size_t{1} << 24),
        shaped({}, kMostBytes + 1),
        shaped({}, std::numeric_limits<std::size_t>::max()),
        shaped({Layout::Kind::contiguous, {{"piece", "16"}}}, 64),
    };
    for (const Transfer& transfer : senseless) {
        SCOPED_TRACE(transfer.text());
        const auto reason = layout_unsupported_reason(transfer);
        ASSERT_TRUE(reason.has_value());
        EXPECT_FALSE(reason->empty());
        EXPECT_EQ(reason->find('\n'), std::string::npos);
        EXPECT_THROW(arrange(transfer, Side::source), NotSupported);
    }
}

TEST(Arrangement, ServesAPathWhoseBytesAreNotKnownYet) {
    EXPECT_EQ(layout_unsupported_reason(shaped(list({{"piece", "7"}}), 0)), std::nullopt);
    EXPECT_EQ(layout_unsupported_reason(shaped(box({{"width", "7"}, {"height", "3"}}), 0)),
              std::nullopt);
}

}  // namespace
}  // namespace waywiser
