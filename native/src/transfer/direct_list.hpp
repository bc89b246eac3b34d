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
    CopyList list;
    // Whether kernels of the GPU find pinned memory at the addresses that CPUs use.
    bool same_addresses = true;
};

// Pieces of a list from one on. Where they are blocks, a kernel's tables follow from the indexes,
// and pieces are made for who asks for them.
class ListPart {
public:
    // The list, what its indexes refer to and `room` have to stay. pieces() writes into `room` what
    // has to be made.
    ListPart(const CopyList& list, std::size_t first, std::size_t wanted, std::vector<Piece>& room);

    [[nodiscard]] std::size_t count() const { return last_ - first_; }
    [[nodiscard]] bool is_all() const { return count() == list_.count(); }
    [[nodiscard]] std::span<const Piece> pieces() const;
    // As traits_of() its pieces. Of blocks, `access` is what fits all blocks of the arrays.
    [[nodiscard]] ListTraits traits(ListPath path) const;
    // Where one side starts, for a formula (`pitch` is not 0) or for offsets.
    [[nodiscard]] std::byte* base(ListSide side, std::size_t pitch) const;
    // Writes the offsets, from `base`, which is base(side, 0), of runs of so many bytes.
    void write_offsets(std::size_t run, ListSide side, const std::byte* base,
                       std::size_t* offsets) const;

private:
    [[nodiscard]] const Blocks& blocks(ListSide side) const;
    [[nodiscard]] std::span<const std::int64_t> index(ListSide side) const;
    [[nodiscard]] std::size_t pitch(ListSide side) const;

    const CopyList& list_;
    std::size_t first_, last_;
    std::vector<Piece>& room_;
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
