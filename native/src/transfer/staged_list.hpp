// Copies lists with pageable memory: CPUs gather the pieces of a chunk into a slot, or scatter them
// from it, and the GPU moves them between the slot and its own memory. Also for lists between two
// GPUs without peer access, and between host memories.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "transfer/chunked_copy.hpp"
#include "transfer/direct_list.hpp"
#include "transfer/engine.hpp"
#include "transfer/job.hpp"
#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

class StagedList final : public Job {
public:
    // All destinations are at one place, and so are all sources; the pieces have their addresses.
    // Each chunk uses `slot_bytes` of staging for its data and tables.
    StagedList(Engine& engine, const End& to, const End& from, const std::vector<Piece>& pieces,
               std::size_t slot_bytes);

    void fill(Chunk& chunk) override;
    void submit(Chunk& chunk) override;
    void drain(Chunk& chunk) override;
    [[nodiscard]] bool drains() const override;

private:
    struct Cut {
        std::size_t run = 0;    // bytes of a run for a kernel; 0: copies only
        std::size_t chunk = 0;  // bytes of data in a slot
    };
    static Cut cut(const std::vector<Piece>& pieces, std::size_t slot_bytes);
    StagedList(Engine& engine, const End& to, const End& from, const std::vector<Piece>& pieces,
               std::size_t slot_bytes, const Cut& cut);

    // The parts of pieces in a chunk, in order.
    [[nodiscard]] std::vector<Piece> parts(const Chunk& chunk) const;
    // In the chunk's slot, after its data; nullptr if no kernel is used.
    [[nodiscard]] std::size_t* table_of(const Chunk& chunk, std::size_t number) const;
    void move_on_gpu(std::span<const Piece> moves, ListSide on_gpu, std::size_t* table,
                     const gpu::Stream& stream) const;

    const bool to_gpu_, from_gpu_;
    const std::vector<Piece> pieces_;
    const std::vector<std::size_t> starts_;  // bytes of the list before each piece
    const Cut cut_;
};

// Maximum number of threads that move a list.
constexpr std::size_t kListThreads = 12;
// Bytes of a slot for lists of `bytes`.
std::size_t list_slot_bytes(std::size_t bytes);

}  // namespace waywiser::transfer
