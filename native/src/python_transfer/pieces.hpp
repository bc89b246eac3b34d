// Splits a copy between two arrays into contiguous pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operand.hpp"

namespace waywiser::python {

// More pieces are rejected: describing them would take longer than copying them by another method.
constexpr std::size_t kMostPieces = std::size_t{1} << 20;

// One piece of a list.
struct PieceView {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
};

struct PieceList {
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> sizes;
    std::size_t bytes = 0;

    // Reserves memory for more pieces; consecutive calls grow it in few steps.
    void make_room(std::size_t more) {
        const std::size_t needed = count() + more;
        if (needed <= to.capacity()) return;
        const std::size_t capacity = std::max(needed, 2 * to.capacity());
        to.reserve(capacity);
        from.reserve(capacity);
        sizes.reserve(capacity);
    }
    void add(std::byte* destination, const std::byte* source, std::size_t size) {
        to.push_back(destination);
        from.push_back(source);
        sizes.push_back(size);
        bytes += size;
    }
    [[nodiscard]] std::size_t count() const { return to.size(); }
    [[nodiscard]] PieceView at(std::size_t i) const { return {to[i], from[i], sizes[i]}; }
};

// The numbers of blocks in an array.
struct BlockIndex {
    std::span<const std::int64_t> entries;  // the caller's, which must not change them, or `own`
    std::vector<std::int64_t> own;
    Held held;  // keeps the caller's
};

// Blocks of two arrays that two indexes select.
struct BlockList {
    std::byte* to = nullptr;  // the first block of each array
    const std::byte* from = nullptr;
    std::int64_t to_stride = 0, from_stride = 0;  // bytes from block to block
    std::size_t to_blocks = 0, from_blocks = 0;   // in the arrays
    std::size_t block = 0;                        // bytes of each
    BlockIndex to_index, from_index;

    [[nodiscard]] std::size_t count() const { return to_index.entries.size(); }
    // Of indexes that are in range.
    [[nodiscard]] PieceView at(std::size_t i) const {
        return {to + to_index.entries[i] * to_stride, from + from_index.entries[i] * from_stride,
                block};
    }
};

// Raises InvalidOperand if the dtypes differ, and InvalidTransfer if the shapes do. `call` is the
// name of the call in messages.
void check_compatible(const Operand& destination, const Operand& source, const char* call);
// Whether the pieces of a copy between compatible arrays are more than a list takes. Raises
// InvalidTransfer if elements of the destination share memory.
bool has_too_many_pieces(const Operand& destination, const Operand& source, const char* call);
// Appends the pieces of a copy between compatible arrays, each as long as possible. Raises
// UnsupportedTransfer if there are too many, InvalidTransfer if elements of the destination share
// memory.
void add_pieces(const Operand& destination, const Operand& source, const char* call,
                PieceList& pieces);
// Raises InvalidTransfer if two destinations, or a destination and a source, share bytes.
void check_overlap(const PieceList& pieces, const char* call);
// Whether the copy is of an array to itself, so that no byte has to move.
bool is_identity(const PieceList& pieces);

}  // namespace waywiser::python
