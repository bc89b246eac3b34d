#include "host/parallel.hpp"
#include "units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace waywiser::host {
namespace {

TEST(Parallel, CoversEveryByteOnce) {
    for (const std::size_t cpus : {0u, 1u, 2u, 3u, 16u, 40u}) {
        for (const std::size_t bytes :
             {std::size_t{0}, std::size_t{1}, 4 * kMiB, 8 * kMiB, 8 * kMiB + 1, 33 * kMiB - 5}) {
            std::mutex guard;
            std::vector<std::pair<std::size_t, std::size_t>> pieces;
            const std::vector<int> own(cpus, allowed_cpus().front());
            parallel(bytes, own, [&](std::size_t from, std::size_t to) {
                const std::lock_guard lock(guard);
                pieces.emplace_back(from, to);
            });
            std::ranges::sort(pieces);
            EXPECT_LE(pieces.size(), std::max<std::size_t>(cpus, 1));
            std::size_t covered = 0;
            for (const auto& [from, to] : pieces) {
                EXPECT_EQ(from, covered);
                covered = to;
            }
            EXPECT_EQ(covered, bytes);
        }
    }
}

}  // namespace
}  // namespace waywiser::host
