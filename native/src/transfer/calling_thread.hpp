// What the calling thread moves alone.
#pragma once

#include <cstddef>

#include "transfer/engine_options.hpp"

namespace waywiser::transfer {

// Fewer bytes are moved between host memories, or from the page cache to one, by the calling
// thread. A single other thread helps little, and often waits for a CPU while it holds a chunk:
// with two CPUs that other programs used too, copies of 8 to 32 MiB took up to three times as long
// (docs/results/2026-11-27-host-copies).
constexpr std::size_t alone_below(std::size_t threads) {
    constexpr std::size_t kOneHelper = 2;
    constexpr std::size_t kBelowWithOne = std::size_t{64} << 20;
    return threads <= kOneHelper ? kBelowWithOne : kPlainBelow;
}

}  // namespace waywiser::transfer
