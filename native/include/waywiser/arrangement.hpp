// Where the bytes of one side of a transfer are: runs of equal length.
//
// Values without pointers: a caller owns its copies. Functions keep nothing and use no global
// state, so that threads may call them at once. All lengths and distances are in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/words.hpp"

namespace waywiser {

enum class Side { source, destination };

// Byte n of the transfer is byte n % run of run n / run.
struct Arrangement {
    Layout::Kind kind = Layout::Kind::contiguous;
    std::size_t run = 0;     // contiguous bytes: a row of a box, a piece of a list
    std::size_t count = 0;   // number of runs
    std::size_t extent = 0;  // bytes from the start to the end of the last run; for a box, to
                             // the end of its last plane

    // For a box: runs per plane, bytes from one run to the next, and bytes from one plane to the
    // next (a multiple of the pitch).
    std::size_t height = 0;
    std::size_t pitch = 0;
    std::size_t plane = 0;
    // For a list: where each run starts, in the order in which they are moved.
    std::vector<std::size_t> offsets;

    // Bytes from the start to run `n`, which is less than `count`.
    [[nodiscard]] std::size_t offset(std::size_t n) const;
};

// The arrangement of a transfer's layout and bytes on one side. Deterministic; the two sides of a
// list differ. Throws NotSupported with the reason of layout_unsupported_reason().
Arrangement arrange(const Transfer& transfer, Side side);

// Why a layout is invalid: an unknown setting, a box that is wider than its pitch, or a number of
// bytes (unless it is 0) that is not a whole number of runs.
std::optional<std::string> layout_unsupported_reason(const Transfer& transfer);

}  // namespace waywiser
