// Random choices that depend on a seed alone: the same on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "units.hpp"

namespace waywiser::fuzz {

class Draw {
public:
    explicit Draw(std::uint64_t seed) : state_(seed) {}
    // Choices that depend on all these numbers, and not on what was drawn from others.
    Draw(std::uint64_t seed, std::uint64_t thread, std::uint64_t operation)
        : Draw(mixed(mixed(mixed(seed) + thread) + operation)) {}

    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15ULL;
        return mixed(state_);
    }
    // At least 0, less than `number`, which is not 0.
    std::size_t below(std::size_t number) { return next() % number; }
    std::size_t between(std::size_t least, std::size_t most) {
        return least + below(most - least + 1);
    }
    // True once in so many times on average.
    bool one_in(std::size_t times) { return below(times) == 0; }
    template <class Value>
    const Value& of(const std::vector<Value>& values) {
        return values[below(values.size())];
    }
    template <class Value, std::size_t kCount>
    Value of(const std::array<Value, kCount>& values) {
        return values[below(kCount)];
    }
    // Sizes of copies: none, few bytes, below and above the limits at which methods change.
    std::size_t bytes(std::size_t most) {
        static constexpr std::array<std::size_t, 6> kMost = {64,       64 * kKiB, kMiB,
                                                             8 * kMiB, 24 * kMiB, 24 * kMiB};
        if (one_in(24)) return 0;
        const std::size_t up_to = std::min(most, of(kMost));
        std::size_t drawn = below(up_to + 1);
        if (one_in(3)) drawn = drawn / 4096 * 4096;
        return drawn;
    }
    template <class Value>
    void shuffle(std::vector<Value>& values) {
        for (std::size_t left = values.size(); left > 1; --left) {
            std::swap(values[left - 1], values[below(left)]);
        }
    }

private:
    static std::uint64_t mixed(std::uint64_t value) {
        value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
        return value ^ (value >> 31U);
    }

    std::uint64_t state_;
};

}  // namespace waywiser::fuzz
