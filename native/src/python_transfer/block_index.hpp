// Blocks of two arrays that are picked by index: the pages of a KV cache.
#pragma once

#include <nanobind/nanobind.h>

#include "pieces.hpp"

namespace waywiser::python {

// What copies block from_index[i] of the source to block to_index[i] of the destination. A block is
// an entry of the first dimension, and all of it lies together. An index is a sequence of integers
// or a one-dimensional array of them on the host. Raises InvalidTransfer for an index that is out
// of range.
BlockList blocks_of(const Operand& destination, const Operand& source, nanobind::handle to_index,
                    nanobind::handle from_index);
// The same as pieces.
PieceList pieces_of(const BlockList& blocks);

}  // namespace waywiser::python
