// How a list is moved whose pieces a GPU reaches: by the copy engine or by a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

enum class ListMethod {
    copies,  // one copy of the runtime for each merged piece
    batch,   // the runtime's batched copy, of merged pieces
    kernel,  // loads and stores of a GPU's threads
};

// What the bytes of a list cross.
enum class ListPath { from_host, to_host, within_gpu, between_gpus };

struct ListTraits {
    ListPath path = ListPath::from_host;
    std::size_t bytes = 0;
    std::size_t merged = 0;  // pieces once neighbours are joined
    std::size_t run = 0;     // what all pieces are whole numbers of
    std::size_t access = 1;  // bytes that a thread can load and store at once: 1, 4, 8 or 16
    // Bytes from piece to piece where a side is regular; 0: it needs a table.
    std::size_t to_pitch = 0;
    std::size_t from_pitch = 0;

    // Entries of the tables that a kernel needs: of each run, for each side without a pitch.
    [[nodiscard]] std::size_t table_entries() const;
};
// What a thread can load at once where these bits are set in an address or a length.
std::size_t common_access(std::uintptr_t bits);
ListTraits traits_of(std::span<const Piece> pieces, ListPath path);

// What moving a list costs on H200 with PCIe 5.0 x16. The figures are in
// docs/results/2026-11-22-transfer. A kernel of one block takes one of 132 multiprocessors, and a
// matrix product beside it 5 to 8 % more time. Two blocks fill the link; with stores to the host,
// the product takes 28 % more time. Copy engines take no multiprocessor.
struct ListCosts {
    double engine_seconds_per_piece = 0.7e-6;  // to submit it; others are moved meanwhile
    double engine_bandwidth = 55e9;            // bytes/s over the link of a host
    double engine_bandwidth_of_gpus = 380e9;
    double block_bandwidth_to_gpu = 48e9;   // bytes/s of one block over the link of a host, by
    double block_bandwidth_to_host = 42e9;  // accesses of 16 bytes
    double block_bandwidth_within_gpu = 64e9;
    double kernel_bandwidth = 51e9;         // of any number of blocks over the link of a host
    double kernel_seconds = 10e-6;          // its launch and the copy of its tables
    double table_seconds_per_entry = 2e-9;  // to write it, and bring it to the GPU
};

struct ListChoice {
    ListMethod method = ListMethod::copies;
    unsigned blocks = 1;  // of a kernel
};

// What a list may take of the GPU that would run a kernel.
struct ListLimits {
    unsigned multiprocessors = 1;  // of the GPU
    unsigned most_over_link = 1;   // of them, for a list to or from the host
    bool spare_engine = false;     // polite: only what a kernel cannot move goes to the engine
};

// The quickest within the limits.
ListChoice choose_list_method(const ListTraits& traits, const ListLimits& limits,
                              const ListCosts& costs = {});

}  // namespace waywiser::transfer
