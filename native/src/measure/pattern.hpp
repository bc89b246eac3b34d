// Bytes that say where they belong: a seeded pattern to copy, its complement to overwrite.
//
// The byte at any place is a function of seed and place alone, so a wrong, missing or displaced
// byte is found. A poisoned destination holds the complement: no byte of it is right by chance.
// The n-th byte that is moved has the pattern's n-th byte, however the view is arranged; the bytes
// between the runs of a destination have a pattern of their own, so that one that is written there
// is found as well.
#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser::measure {

struct Mismatch {
    std::size_t count = 0;
    std::size_t first = 0;  // place of the first; meaningful where count > 0
};

void fill(const View& view, std::uint64_t seed, const Machine& machine);
void poison(const View& view, std::uint64_t seed, const Machine& machine);  // gaps included
// Of the bytes that are moved: the first by its place among them.
Mismatch check(const View& view, std::uint64_t seed, const Machine& machine);
// Of the bytes between the runs, after poison: the first by its offset from the view's start.
Mismatch check_gaps(const View& view, std::uint64_t seed, const Machine& machine);

}  // namespace waywiser::measure
