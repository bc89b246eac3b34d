// The pattern itself, used by kernels, CPU threads and file writers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/launch.hpp"

namespace waywiser::measure {

using Word = std::uint64_t;
inline constexpr std::size_t kWord = sizeof(Word);

// The finaliser of splitmix64 (Steele, Lea & Flood, OOPSLA 2014) over seed and position.
WAYWISER_BOTH inline Word word_at(Word seed, std::size_t index) {
    Word z = seed + (static_cast<Word>(index) + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

// `flip` is 0 for the pattern, and all ones for its complement.
WAYWISER_BOTH inline unsigned char byte_at(Word seed, Word flip, std::size_t offset) {
    return static_cast<unsigned char>((word_at(seed, offset / kWord) ^ flip) >>
                                      (8 * (offset % kWord)));
}

}  // namespace waywiser::measure
