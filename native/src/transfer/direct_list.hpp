// Lists whose pieces a GPU reaches, on the stream of a caller.
#pragma once

#include <span>
#include <vector>

#include "transfer/engine.hpp"
#include "transfer/list_method.hpp"
#include "transfer/ordering.hpp"
#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

// Pieces that all go from one place to one place.
struct PieceGroup {
    Side to, from;  // of all pieces; their addresses are those of the first
    std::vector<Piece> pieces;
    // Whether kernels of the GPU find pinned memory at the addresses that CPUs use.
    bool same_addresses = true;
};

// Enqueues the moves of all pieces; both sides are device memory or pinned. Does not block. While
// the stream is captured, plain copies are recorded.
void move_direct(Engine& engine, const PieceGroup& group, const Ordering& order,
                 const CallerStream& stream);

// Writes the offsets, from `base`, of the runs that pieces are cut into.
void write_offsets(std::span<const Piece> pieces, std::size_t run, ListSide side,
                   const std::byte* base, std::size_t* offsets);

// Whether kernels of the device find page-locked memory at the address that CPUs use.
bool has_same_address(std::byte* host, int device);

}  // namespace waywiser::transfer
