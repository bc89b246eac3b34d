// Copies lists with pageable memory: CPUs gather the pieces of a chunk into a slot, or scatter them
// from it, and the GPU moves them between the slot and its own memory. Also for lists between two
// GPUs without peer access, and between host memories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "transfer/chunked_copy.hpp"
#include "transfer/direct_list.hpp"
#include "transfer/engine.hpp"
#include "transfer/job.hpp"
#include "transfer/list_pipeline.hpp"
#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

class StagedList final : public Job {
public:
    // All destinations are at one place, and so are all sources; the pieces have their addresses.
    // Each slot has `slot_bytes` of staging for its data and tables. The index arrays of blocks
    // must outlive the submission of all bytes, unless keep_indexes() is called first.
    StagedList(Engine& engine, const Endpoint& to, const Endpoint& from, CopyList list,
               std::size_t slot_bytes);

    void keep_indexes();

    void fill(const Part& part, std::byte* slot) override;
    void submit(std::span<const Submission> made) override;
    void drain(const Part& part, const std::byte* slot) override;
    void clear() noexcept override;

private:
    struct Cut {
        std::size_t run = 0;    // bytes of a run for a kernel; 0: copies only
        std::size_t chunk = 0;  // bytes of data in a slot
        std::size_t least = 0;  // of what a CPU copies at once
    };
    static Cut cut(const CopyList& list, std::size_t slot_bytes);
    static Division division(const Cut& cut, std::size_t slot_bytes, CpuWork work);
    static CpuWork work_of(const Endpoint& to, const Endpoint& from);
    StagedList(Engine& engine, const Endpoint& to, const Endpoint& from, CopyList&& list,
               std::size_t slot_bytes, const Cut& cut);

    // Kernels and copies of one GPU, through its staging memory. Thread safe.
    class OnGpu {
    public:
        OnGpu(Engine& engine, int gpu, std::size_t list_bytes);
        // Moves the bytes of a part of a list between GPU memory (the side `on_gpu`) and a slot in
        // pinned memory, where they are together. Later work of the stream follows. `table`: memory
        // for an offset of each run, in pinned memory; nullptr: by copies only. `after`: fills the
        // slot, and the stream waits for it; nullptr if the slot is ready.
        void move(const ListPart& part, ListSide on_gpu, std::byte* slot, std::size_t* table,
                  const gpu::Stream& stream, const gpu::Event* after);
        void give_back() noexcept;

    private:
        static ListLimits limits(Engine& engine, int gpu, std::size_t list_bytes);
        // False if no pipeline is free.
        bool move_by_pipeline(const Runs& listed, std::byte* slot, ListSide on_gpu,
                              const ListChoice& choice, const gpu::Stream& stream,
                              const gpu::Event* after);

        ListStaging& lists_;
        const int gpu_;
        const ListLimits limits_;
        std::mutex mutex_;  // guards the following
        std::unique_ptr<OwnPipeline> pipeline_;
        bool has_none_ = false;  // none was free, or there was no memory for one
    };

    void enqueue(const Submission& made);
    // `table`: the number of the table for the side on the GPU.
    void move_on_gpu(OnGpu& gpu, ListSide side, const Submission& made, std::size_t table,
                     const gpu::Stream& stream, const gpu::Event* after) const;
    // The parts of pieces in a part of the list, in order.
    [[nodiscard]] std::vector<Piece> parts(const Part& part) const;
    // In the slot, after its data; nullptr if no kernel is used.
    [[nodiscard]] std::size_t* table_of(std::byte* slot, std::size_t number) const;

    const bool to_gpu_, from_gpu_;
    CopyList list_;
    std::vector<std::int64_t> to_index_, from_index_;  // copies of the caller's
    std::vector<std::size_t> starts_;  // bytes of the list before each piece, if it has no blocks
    const Cut cut_;
    std::unique_ptr<OnGpu> source_, destination_;  // of GPUs
};

// Maximum number of threads that move a list.
constexpr std::size_t kListThreads = 12;
// Bytes of a slot for lists of `bytes`.
std::size_t list_slot_bytes(std::size_t bytes);

}  // namespace waywiser::transfer
