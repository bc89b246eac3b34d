// Moves lists whose pieces a GPU can access, on the caller's stream.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "transfer/engine.hpp"
#include "transfer/list_method.hpp"
#include "transfer/move_runs.hpp"
#include "transfer/ordering.hpp"
#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

// Pieces with the same source and destination place.
struct PieceGroup {
    Side to, from;  // of all pieces; the addresses are those of the first piece
    CopyList list;
    // Whether kernels of the GPU access pinned memory at the addresses that CPUs use.
    bool same_addresses = true;
};

// A range of a list's pieces. For block lists, kernel tables are made from the indexes, and pieces
// only on request.
class ListPart {
public:
    // The list, its index arrays and `buffer` must outlive this. pieces() writes into `buffer` if
    // it has to make pieces.
    ListPart(const CopyList& list, std::size_t first, std::size_t most, std::vector<Piece>& buffer);

    [[nodiscard]] std::size_t count() const { return last_ - first_; }
    // The number of the list's pieces up to its last one.
    [[nodiscard]] std::size_t end() const { return last_; }
    [[nodiscard]] bool is_all() const { return count() == list_.count(); }
    // Blocks of one array on each side. Other pieces may be of several allocations.
    [[nodiscard]] bool is_of_blocks() const { return list_.block != 0; }
    [[nodiscard]] std::span<const Piece> pieces() const;
    // The sizes of the shortest and the longest piece.
    [[nodiscard]] std::pair<std::size_t, std::size_t> piece_bytes() const;
    // Like traits_of() the pieces. For blocks, `access` fits all blocks of the arrays.
    [[nodiscard]] ListTraits traits(ListPath path) const;
    // The base address of one side, for a formula (`pitch` is not 0) or for offsets.
    [[nodiscard]] std::byte* base(ListSide side, std::size_t pitch) const;
    // Writes the offsets of runs of `run` bytes, relative to `base`, which is base(side, 0).
    void write_offsets(std::size_t run, ListSide side, const std::byte* base,
                       std::size_t* offsets) const;

private:
    [[nodiscard]] const Blocks& blocks(ListSide side) const;
    [[nodiscard]] std::span<const std::int64_t> index(ListSide side) const;
    [[nodiscard]] std::size_t pitch(ListSide side) const;

    const CopyList& list_;
    std::size_t first_, last_;
    std::vector<Piece>& buffer_;
};

// The runs of one side of a part for a kernel, by a formula if its pieces are equally spaced.
Runs runs_of(const ListPart& part, const ListTraits& traits, ListSide side,
             const std::size_t* offsets);

// Enqueues a copy of the runtime for each piece, after neighbours are joined.
void move_by_copies(std::span<const Piece> pieces, const gpu::Stream& stream);

// Enqueues the moves of all pieces; both sides are device or pinned memory. Does not block. While
// the stream is captured, plain copies are recorded. Checks the indexes of blocks before it moves
// them, but of more than 32,768 not all before it moves the first ones: then it throws InvalidCopy
// like CopyList::check(). After any failure nothing of the list uses memory, unless it is
// MemoryInUse.
void move_direct(Engine& engine, PieceGroup& group, const Ordering& order,
                 const CallerStream& stream);

// What a list of `bytes` in a stream of the GPU may use of it.
ListLimits list_limits(Engine& engine, int gpu, std::size_t bytes);

// What moves some pieces of a list.
struct DirectMove {
    ListChoice choice;                // `blocks`: the most of all parts
    std::size_t pieces = 0;           // before neighbours are joined
    std::size_t calls = 0;            // copies of the runtime, or batches of them
    std::size_t least = 0, most = 0;  // bytes of a piece
};
// The methods by which move_direct() would move a checked list in a stream of the GPU with its
// pieces, if all staging memory is free. Moves nothing.
std::vector<DirectMove> plan_direct(Engine& engine, const PieceGroup& group);

// Writes the offsets, relative to `base`, of the runs that pieces are cut into.
void write_offsets(std::span<const Piece> pieces, std::size_t run, ListSide side,
                   const std::byte* base, std::size_t* offsets);

// Whether kernels of the device access page-locked memory at the address that CPUs use.
bool has_same_address(std::byte* host, int device);

}  // namespace waywiser::transfer
