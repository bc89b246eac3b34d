// Lists of pieces to copy: made of arrays of pointers or of indexed blocks, checked, and merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

// The memory that all pieces of one side lie in, where that is known; no bytes: it is not.
struct Extent {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
};

// What is copied: pieces, or blocks that become pieces part by part. All pieces of a long list take
// longer to write down than a GPU takes to move them.
struct CopyList {
    std::vector<Piece> pieces;  // none is empty; none where there are blocks
    Extent to, from;
    Blocks to_blocks, from_blocks;  // with indexes of equal length; the caller's
    std::size_t block = 0;          // bytes of each

    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] std::size_t bytes() const;
    // So many pieces from one on, in `room` where they have to be made.
    std::span<const Piece> part(std::size_t first, std::size_t wanted,
                                std::vector<Piece>& room) const;
    // Makes all pieces; afterwards there are no blocks.
    void make_pieces();
};

// Leaves out empty pieces. Throws InvalidCopy for null pointers, and where a destination overlaps a
// source or another destination.
CopyList list_of(std::span<void* const> to, std::span<const void* const> from,
                 std::span<const std::size_t> sizes);
// Block `from.index[i]` goes to block `to.index[i]`, `block` bytes each. Pieces are made only where
// the arrays meet; what the indexes refer to has to stay. Throws InvalidCopy where
// an index is out of range, a block is longer than a stride, or a destination overlaps a source or
// another destination.
CopyList list_of(const Blocks& to, const Blocks& from, std::size_t block);

// Joins neighbours that lie together on both sides.
std::vector<Piece> merged(std::span<const Piece> pieces);
// How many that would be.
std::size_t merged_count(std::span<const Piece> pieces);
std::size_t bytes_of(std::span<const Piece> pieces);
// The longest length that every piece is a whole number of; 0 without pieces.
std::size_t common_run(std::span<const Piece> pieces);
enum class ListSide { to, from };
// The lowest address of the pieces' destinations or sources.
std::byte* lowest(std::span<const Piece> pieces, ListSide side);
// Bytes from piece to piece on a side where all are alike: equally long, equally far apart, and in
// the order of their addresses. 0 where they are not.
std::size_t pitch_of(std::span<const Piece> pieces, ListSide side);

}  // namespace waywiser::transfer
