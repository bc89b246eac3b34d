// The fraction of very many similar cases that a test runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <random>
#include <ranges>
#include <vector>

#include "support/sanitizer.hpp"

namespace waywiser::test {

// Races depend on which threads meet, not on the number and place of bytes: under the thread
// sanitizer, which is ten times slower, and on an emulated machine, tests use few sizes.
inline bool many_sizes() { return sanitizer() != Sanitizer::thread && !is_emulated(); }

// Under a sanitizer or on an emulated machine a test of very many similar cases runs one in
// `case_stride()`, else all of them.
inline std::size_t case_stride() {
    if (is_emulated()) return 25;
    switch (sanitizer()) {
        case Sanitizer::thread: return 25;
        case Sanitizer::address: return 9;
        case Sanitizer::none: return 1;
    }
    return 1;
}

// One in `case_stride()` of the cases, in order, the same ones in each run.
template <class Case>
std::vector<Case> some_of(const std::vector<Case>& cases) {
    std::vector<Case> kept;
    std::ranges::sample(
        cases, std::back_inserter(kept),
        static_cast<std::ptrdiff_t>((cases.size() + case_stride() - 1) / case_stride()),
        std::minstd_rand(5));
    return kept;
}

// One in four of the cases, from the first on, where tests use few sizes, else all of them: for
// cases that differ in sizes and places alone.
template <class Cases>
auto few_of(const Cases& cases) {
    std::vector<std::ranges::range_value_t<Cases>> kept;
    std::size_t number = 0;
    for (const auto& each : cases) {
        if (many_sizes() || number % 4 == 0) kept.push_back(each);
        ++number;
    }
    return kept;
}

}  // namespace waywiser::test
