// Lists of pieces to copy: built from arrays of pointers or from indexed blocks, checked, and
// merged.
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
    // Whether a side begins an allocation or a registration: the runtime rejects a copy from before
    // it, even if the memory before it is another allocation that ends there.
    bool to_begins = false;
    bool from_begins = false;
};

// Blocks of an array selected by an index.
struct Blocks {
    std::byte* data = nullptr;
    std::size_t stride = 0;  // bytes from one block to the next
    std::size_t blocks = 0;  // number of blocks in the array
    std::span<const std::int64_t> index;

    // Of the first `known` entries, which were checked: they are in range.
    std::size_t known = 0;
    std::size_t step = 0;    // step_of() them
    bool ascending = false;  // each is greater than the one before

    // Bytes from block to block in memory if the step is known; else 0.
    [[nodiscard]] std::size_t pitch() const { return step * stride; }
};

// The memory that contains all pieces of one side; no bytes if unknown.
struct Extent {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
};

// The pieces of a copy, or blocks that are converted to pieces in parts: writing all pieces of a
// long list takes longer than moving them on a GPU.
struct CopyList {
    std::vector<Piece> pieces;  // without empty pieces; no pieces if there are blocks
    Extent to, from;
    Blocks to_blocks, from_blocks;  // indexes of equal length, owned by the caller
    std::size_t block = 0;          // bytes of each block
    bool checked = true;            // false after blocks_of(), until all entries are checked

    // Check the indexes, of all blocks or of the first ones, before they are moved: to read a long
    // index takes longer than to start moving. Throw InvalidCopy like list_of().
    void check();
    void check_first(std::size_t blocks);
    // The same of the source alone.
    void check_source(std::size_t blocks);
    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] std::size_t bytes() const;
    // Up to `most` pieces from `first` on, in `buffer` if they have to be made.
    std::span<const Piece> part(std::size_t first, std::size_t most,
                                std::vector<Piece>& buffer) const;
    // Converts all blocks to pieces.
    void make_pieces();

    // One bit for each block of the destination, set for the first `marked` entries of its index;
    // none if these ascend.
    std::vector<std::uint64_t> marks;
    std::size_t marked = 0;
};

// Omits empty pieces. Throws InvalidCopy for null pointers, or if a destination overlaps a source
// or another destination.
CopyList list_of(std::span<void* const> to, std::span<const void* const> from,
                 std::span<const std::size_t> sizes);
// Block `from.index[i]` is copied to block `to.index[i]`, `block` bytes each. Makes pieces only if
// the arrays overlap. The index arrays must outlive the list. Throws InvalidCopy if an index is out
// of range, a block is longer than a stride, or a destination overlaps a source or another
// destination.
CopyList list_of(const Blocks& to, const Blocks& from, std::size_t block);
// The same without a check of the indexes, unless the arrays overlap: check_first() or check() has
// to be called before blocks are moved.
CopyList blocks_of(const Blocks& to, const Blocks& from, std::size_t block);

// The difference of each entry of an index to the one before it, if all are equal and positive;
// else 0. The entries may be out of range.
std::size_t step_of(std::span<const std::int64_t> index);

// Joins neighbours that are adjacent on both sides.
std::vector<Piece> merged(std::span<const Piece> pieces);
// The number of pieces after merging.
std::size_t merged_count(std::span<const Piece> pieces);
std::size_t bytes_of(std::span<const Piece> pieces);
// The greatest common divisor of the pieces' sizes; 0 without pieces.
std::size_t common_run(std::span<const Piece> pieces);
enum class ListSide { to, from };
// The lowest address of the pieces' destinations or sources.
std::byte* lowest(std::span<const Piece> pieces, ListSide side);
// Whether each piece starts where the one before it ends, on a side.
bool is_contiguous(std::span<const Piece> pieces, ListSide side);
// Bytes from piece to piece on a side if all have the same length and distance and ascending
// addresses; else 0.
std::size_t pitch_of(std::span<const Piece> pieces, ListSide side);

}  // namespace waywiser::transfer
