// A seeded pattern to copy, and its complement to overwrite it with.
//
// Each byte is a function of seed and position, so that a wrong, missing or displaced byte is
// found. A poisoned destination contains the complement, so that none of its bytes is right by
// chance. The n-th byte of a transfer is the pattern's n-th byte, for any arrangement of the view.
// The gaps between the runs of a destination contain another pattern, so that a write there is
// found too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser::measure {

struct Mismatch {
    std::size_t count = 0;
    std::size_t first = 0;  // position of the first one, if count > 0
};

// `at` is the position of the first byte of a contiguous view in memory in the pattern.
void fill(const View& view, std::uint64_t seed, const Machine& machine, std::size_t at = 0);
void poison(const View& view, std::uint64_t seed, const Machine& machine,
            std::size_t at = 0);  // including gaps
// Checks the bytes of the runs; `first` is a position in the pattern.
Mismatch check(const View& view, std::uint64_t seed, const Machine& machine, std::size_t at = 0);
// Checks the bytes between the runs, after poison(); `first` is an offset from the view's start.
Mismatch check_gaps(const View& view, std::uint64_t seed, const Machine& machine);

}  // namespace waywiser::measure
