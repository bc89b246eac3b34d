// Where the bytes of one side of a transfer lie: runs of equal length, apart from each other.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/words.hpp"

namespace waywiser {

enum class Side { source, destination };

// The n-th byte that is moved is byte n % run of run n / run.
struct Arrangement {
    Layout::Kind kind = Layout::Kind::contiguous;
    std::size_t run = 0;     // bytes that lie together: a row of a box, a piece of a list
    std::size_t count = 0;   // of runs
    std::size_t extent = 0;  // bytes from the start to the end of the last run; of a box, of
                             // its last plane, as the array that it is part of has whole ones

    // Of a box: runs of a plane, bytes from one to the next, and from one plane to the next (a
    // multiple of the pitch).
    std::size_t height = 0;
    std::size_t pitch = 0;
    std::size_t plane = 0;
    // Of a list: where each run starts, in the order in which they are moved.
    std::vector<std::size_t> offsets;

    [[nodiscard]] std::size_t offset(std::size_t n) const;
};

// How a transfer's layout lies at its number of bytes. Deterministic: the same transfer lies the
// same everywhere; the two sides of a list differ. Throws Refused as layout_refusal says.
Arrangement arrange(const Transfer& transfer, Side side);

// Why a layout makes no sense: a setting that it does not have, a box that is wider than its pitch,
// and, unless the transfer has no bytes yet, bytes that are not a whole number of its runs.
std::optional<std::string> layout_refusal(const Transfer& transfer);

}  // namespace waywiser
