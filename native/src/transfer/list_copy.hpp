// Copies of many pieces: a list of any pieces, or equal blocks of two arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transfer/copy.hpp"

namespace waywiser::transfer {

struct Piece {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
};

// Blocks of an array that an index names.
struct Blocks {
    std::byte* data = nullptr;
    std::size_t stride = 0;  // bytes from one block to the next
    std::size_t blocks = 0;  // of the array
    std::span<const std::int64_t> index;
};

// The pieces without empty ones. Throws InvalidCopy for null pointers.
std::vector<Piece> pieces_of(std::span<void* const> to, std::span<const void* const> from,
                             std::span<const std::size_t> sizes);
// Block `from.index[i]` goes to block `to.index[i]`, `block` bytes each. Throws InvalidCopy where
// an index is out of range, or a block is longer than a stride.
std::vector<Piece> pieces_of(const Blocks& to, const Blocks& from, std::size_t block);

// Joins neighbours that lie together on both sides.
std::vector<Piece> merged(const std::vector<Piece>& pieces);

// As copy() and copy_async(), for all pieces. Throws InvalidCopy where a source overlaps a
// destination, or pieces lie at different places.
void copy_list(Engine& engine, const std::vector<Piece>& pieces, const CallerStream& stream);
Started copy_list_async(const std::shared_ptr<Engine>& engine, const std::vector<Piece>& pieces,
                        const CallerStream& stream);

}  // namespace waywiser::transfer
