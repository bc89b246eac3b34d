// Blocks of two arrays that are picked by index: the pages of a KV cache.
#pragma once

#include <nanobind/nanobind.h>

#include "pieces.hpp"

namespace waywiser::python {

// The pieces that copy block from_index[i] of the source to block to_index[i] of the destination. A
// block is an entry of the first dimension, and all of it lies together. An index is a sequence of
// integers or a one-dimensional array of them on the host. Raises InvalidTransfer for an index that
// is out of range or that occurs twice among the destinations.
PieceList pieces_of_blocks(const Operand& destination, const Operand& source,
                           nanobind::handle to_index, nanobind::handle from_index);

}  // namespace waywiser::python
