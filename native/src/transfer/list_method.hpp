// Chooses how to move a list whose pieces a GPU can access: by the copy engine or by a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transfer/piece_list.hpp"
#include "transfer/policy.hpp"

namespace waywiser::transfer {

// Pieces per call: with more pieces in one call the bandwidth falls (51 GB/s H2D by calls of 256
// pieces of 28 KiB, 49 by calls of 1,024, 39 by calls of 4,096; measured on H200).
constexpr std::size_t kMostInBatch = 256;

enum class ListMethod {
    copies,    // one copy of the runtime for each merged piece
    batch,     // the runtime's batched copy of merged pieces
    kernel,    // loads and stores of a GPU's threads
    pipeline,  // a kernel and a copy engine, through staging memory on the GPU
};

// The links that the bytes of a list cross.
enum class ListPath { from_host, to_host, within_gpu, between_gpus };

struct ListTraits {
    ListPath path = ListPath::from_host;
    std::size_t bytes = 0;
    std::size_t merged = 0;  // number of pieces after neighbours are joined
    std::size_t run = 0;     // bytes; the size of every piece is a multiple of it
    std::size_t access = 1;  // bytes that a thread can load and store at once: 1, 4, 8 or 16
    // Bytes from piece to piece if a side is regular; 0 if it needs a table.
    std::size_t to_pitch = 0;
    std::size_t from_pitch = 0;
    bool host_contiguous = false;  // each piece follows the one before it in host memory
    std::size_t gpu_access = 1;    // like `access`, if the other side is staging memory on the GPU

    // Number of table entries that a kernel needs: one per run for each side without a pitch.
    [[nodiscard]] std::size_t table_entries() const;
    // The same of a pipeline, which needs none for the host.
    [[nodiscard]] std::size_t pipeline_entries() const;
};
// Bytes that a thread can load at once if these bits are set in an address or a length.
std::size_t common_access(std::uintptr_t bits);
ListTraits traits_of(std::span<const Piece> pieces, ListPath path);

// Multiprocessors that move a list over the link to the host, if a program sets no number and both
// sides are scattered. Two fill the link. A concurrent matrix product takes 1.2 to 1.3 times as
// long beside two, and 1.1 to 1.2 times beside one, but for longer: per byte it loses as much
// (docs/results/2026-11-28-one-engine).
constexpr unsigned kMultiprocessorsOverLink = 2;

// Costs of moving a list on H200 with PCIe 5.0 x16, from docs/results/2026-11-22-transfer. Copy
// engines use no multiprocessor.
struct ListCosts {
    double engine_seconds_per_piece = 0.7e-6;  // to submit it, concurrently with moving others
    // To prepare a piece of the first call, before the engine starts: H100, 64 KiB each.
    double engine_seconds_before = 0.45e-6;
    double engine_bandwidth = 53.2e9;  // bytes/s over the link to the host
    double engine_bandwidth_of_gpus = 380e9;
    double block_bandwidth_to_gpu = 48e9;   // bytes/s of one block over the link to the host,
    double block_bandwidth_to_host = 42e9;  // with accesses of 16 bytes
    double block_bandwidth_within_gpu = 64e9;
    double kernel_bandwidth = 51e9;         // any number of blocks over the link to the host
    double kernel_seconds = 10e-6;          // its launch and the copy of its tables
    double table_seconds_per_entry = 2e-9;  // to write it and copy it to the GPU
    double pipeline_seconds = 40e-6;        // before and after its copies over the link
    double pipeline_bandwidth = 54e9;       // bytes/s over the link to the host
};

struct ListChoice {
    ListMethod method = ListMethod::copies;
    unsigned blocks = 1;                     // of a kernel
    std::size_t chunk = 0;                   // bytes of a chunk of a pipeline
    std::size_t slots = 0;                   // chunks of a pipeline in staging memory
    const PolicyDecision* policy = nullptr;  // what decided; nullptr: the costs
};

// Limits of a list on the GPU that would run a kernel.
struct ListLimits {
    unsigned multiprocessors = 1;  // of the GPU
    // For a list to or from the host; 0: kMultiprocessorsOverLink, or one if the pieces are
    // contiguous in host memory: a pipeline is faster then if the list is long.
    unsigned most_over_link = 0;
    bool spare_engine = false;  // polite: use the engine only for what a kernel cannot move
    unsigned of_pipeline = 0;   // limit for the kernels of a pipeline; 0: no pipeline
    std::size_t pipeline_chunk = std::size_t{8} << 20;  // most bytes of its chunks
    std::size_t list_bytes = 0;  // of the whole list, if this is a part of it
    bool kernel_reaches = true;  // a kernel can access both sides
    bool has_batch = true;       // the runtime has batched copies
};

// By a pipeline, which has to be within the limits, with the settings of a decision for pipelines
// or of the library.
ListChoice pipeline_of(const ListTraits& traits, const ListLimits& limits,
                       const PolicyDecision* made = nullptr);
// The fastest method within the limits.
ListChoice choose_list_method(const ListTraits& traits, const ListLimits& limits,
                              const ListCosts& costs = {});
// The same by a policy, among the methods that the GPU and the runtime have; nullptr: without a
// policy. It decides nothing for a list that spares the engine or that a kernel cannot move. If it
// has rows for lists that are contiguous in host memory, they decide about these; else no row does
// if a pipeline is faster by its costs.
ListChoice choose_list_method(const ListTraits& traits, const ListLimits& limits,
                              const PolicyTable* policy);

}  // namespace waywiser::transfer
