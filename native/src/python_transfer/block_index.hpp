// Blocks of two arrays selected by index, such as the pages of a KV cache.
#pragma once

#include <nanobind/nanobind.h>

#include "pieces.hpp"

namespace waywiser::python {

// The copy of block from_index[i] of the source to block to_index[i] of the destination. A block is
// a contiguous entry of the first dimension. An index is a sequence of integers or a
// one-dimensional integer array on the host; whether it is in range is not checked.
BlockList blocks_of(const Operand& destination, const Operand& source, nanobind::handle to_index,
                    nanobind::handle from_index);
// Raises InvalidTransfer if an index is out of range.
void check_indexes(const BlockList& blocks);
// The same as pieces. Raises like check_indexes().
PieceList pieces_of(const BlockList& blocks);

}  // namespace waywiser::python
