// Bytes that say where they belong: a seeded pattern to copy, its complement to overwrite.
//
// The byte at any offset is a function of seed and offset alone, so a wrong, missing or displaced
// byte is found. A poisoned destination holds the complement: no byte of it is right by chance.
#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser::measure {

struct Mismatch {
    std::size_t count = 0;
    std::size_t first = 0;  // offset; meaningful where count > 0
};

void fill(const View& view, std::uint64_t seed, const Machine& machine);
void poison(const View& view, std::uint64_t seed, const Machine& machine);
Mismatch check(const View& view, std::uint64_t seed, const Machine& machine);

}  // namespace waywiser::measure
