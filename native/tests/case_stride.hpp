// How many of very many like cases a test runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <random>
#include <vector>

namespace waywiser::test {

// Races depend on which threads meet and not on how many bytes they move or where: under the thread
// sanitizer, which takes ten times as long, tests use few sizes.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kManySizes = false;
#else
inline constexpr bool kManySizes = true;
#endif

// Under a sanitizer a test of very many like cases runs one in `kCaseStride`. Without one it runs
// all of them.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::size_t kCaseStride = 5;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kCaseStride = 3;
#else
inline constexpr std::size_t kCaseStride = 1;
#endif

// One in `kCaseStride` of the cases, in their order, and the same ones in each run.
template <class Case>
std::vector<Case> some_of(const std::vector<Case>& cases) {
    std::vector<Case> kept;
    std::ranges::sample(cases, std::back_inserter(kept),
                        static_cast<std::ptrdiff_t>((cases.size() + kCaseStride - 1) / kCaseStride),
                        std::minstd_rand(5));
    return kept;
}

}  // namespace waywiser::test
