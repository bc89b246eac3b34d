// A stretch of the pattern in memory, written and checked by one thread or several.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/launch.hpp"
#include "measure/pattern.hpp"
#include "measure/pattern_words.hpp"

namespace waywiser::measure {

// Contiguous bytes that contain a part of the pattern.
struct Stretch {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t at = 0;  // position of the first byte in the pattern
};

// Bytes of the stretch that can be processed as words; 0 if it starts within a word.
WAYWISER_BOTH inline std::size_t whole_words(const Stretch& stretch) {
    const std::size_t off = reinterpret_cast<std::uintptr_t>(stretch.data) | stretch.at;
    return off % kWord == 0 ? stretch.bytes / kWord : 0;
}

// One thread's share of the stretch.
WAYWISER_BOTH inline void write(const Stretch& stretch, Word seed, Word flip, std::size_t thread,
                                std::size_t threads) {
    auto* words = reinterpret_cast<Word*>(stretch.data);
    const std::size_t whole = whole_words(stretch);
    for (std::size_t i = thread; i < whole; i += threads) {
        words[i] = word_at(seed, stretch.at / kWord + i) ^ flip;
    }
    for (std::size_t i = whole * kWord + thread; i < stretch.bytes; i += threads) {
        stretch.data[i] = static_cast<std::byte>(byte_at(seed, flip, stretch.at + i));
    }
}

// The number of bytes in the share that differ from the pattern, and the position of the first.
WAYWISER_BOTH inline Mismatch count_wrong(const Stretch& stretch, Word seed, std::size_t thread,
                                          std::size_t threads) {
    Mismatch wrong;
    const auto inspect = [&](std::size_t i) {
        if (static_cast<unsigned char>(stretch.data[i]) == byte_at(seed, 0, stretch.at + i)) return;
        if (wrong.count == 0 || stretch.at + i < wrong.first) wrong.first = stretch.at + i;
        ++wrong.count;
    };
    const auto* words = reinterpret_cast<const Word*>(stretch.data);
    const std::size_t whole = whole_words(stretch);
    for (std::size_t i = thread; i < whole; i += threads) {
        if (words[i] == word_at(seed, stretch.at / kWord + i)) continue;
        for (std::size_t k = i * kWord; k < (i + 1) * kWord; ++k) inspect(k);
    }
    for (std::size_t i = whole * kWord + thread; i < stretch.bytes; i += threads) inspect(i);
    return wrong;
}

}  // namespace waywiser::measure
