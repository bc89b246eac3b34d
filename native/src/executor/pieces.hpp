// Iterates over the contiguous pieces of a transfer.
#pragma once

#include <algorithm>
#include <cstddef>

#include "waywiser/executor.hpp"

namespace waywiser {

// Throws NotSupported if a view's arrangement differs from that of the prepared transfer (offsets
// are not compared). A view without an arrangement is contiguous and always valid.
inline void check_arrangement(const View& view, const Arrangement& prepared) {
    const Arrangement* arrangement = view.arrangement;
    if (arrangement == nullptr ||
        (arrangement->kind == prepared.kind && arrangement->run == prepared.run &&
         arrangement->count == prepared.count && arrangement->extent == prepared.extent)) {
        return;
    }
    throw NotSupported("the bytes lie otherwise than those of the transfer that was prepared");
}

// Calls move(to, from, bytes) for each piece that is contiguous on both sides, in order, for the
// transfer's bytes [first, last).
template <class Move>
void for_each_piece(const View& destination, const View& source, std::size_t first,
                    std::size_t last, const Move& move) {
    const Arrangement* arrangement =
        source.arrangement != nullptr ? source.arrangement : destination.arrangement;
    if (arrangement == nullptr) {
        if (first < last) move(destination.data + first, source.data + first, last - first);
        return;
    }
    const std::size_t run = arrangement->run;
    const auto start = [run](const View& view, std::size_t n) {
        return view.data + (view.arrangement == nullptr ? n * run : view.arrangement->offset(n));
    };
    std::size_t skip = first % run;
    for (std::size_t n = first / run; first < last; ++n) {
        const std::size_t bytes = std::min(run - skip, last - first);
        move(start(destination, n) + skip, start(source, n) + skip, bytes);
        first += bytes;
        skip = 0;
    }
}

}  // namespace waywiser
