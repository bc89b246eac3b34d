// Moves lists whose host side is contiguous: a kernel gathers or scatters chunks in staging memory
// of the GPU, while a copy engine moves other chunks over the link.
//
// A kernel that accesses host memory occupies multiprocessors for as long as the link takes. One
// that moves bytes within the GPU needs them for a fraction of that time, and the copy engine
// reaches the bandwidth of a contiguous copy.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/move_runs.hpp"
#include "transfer/staging.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// With chunks of 4 MiB instead of 8, what the copy engine does between two of them takes twice as
// much of the time, 2 us each.
struct PipelineShape {
    std::size_t chunk = std::size_t{8} << 20;  // bytes of staging memory for one chunk
    std::size_t slots = 3;                     // chunks in staging memory
    unsigned blocks = 8;                       // of a kernel
    [[nodiscard]] std::size_t bytes() const { return chunk * slots; }
};
// The largest shape whose staging memory is within `bytes`; its chunk is 0 if there is none.
PipelineShape pipeline_within(std::size_t bytes);

// Used by one thread at a time. Its moves are ordered among themselves, and with the work of other
// streams only by start_after() and finish_before().
class ListPipeline {
public:
    // `staging` has shape.bytes(), of the device, and outlives this.
    ListPipeline(int device, std::byte* staging, const PipelineShape& shape);
    // Waits for all moves, as settle() does.
    ~ListPipeline() { static_cast<void>(settle()); }
    ListPipeline(const ListPipeline&) = delete;
    ListPipeline& operator=(const ListPipeline&) = delete;

    [[nodiscard]] const PipelineShape& shape() const { return shape_; }

    // Later moves, of `bytes` in all, start after the work that is in the stream now, with at most
    // `slots` chunks in staging memory; 0: those of the shape.
    void start_after(const gpu::Stream& stream, std::size_t bytes, std::size_t slots = 0);
    // Later moves start after the event.
    void wait(const gpu::Event& event);
    // Enqueue the moves of all runs, in chunks of at most `chunk` bytes (and those of the shape),
    // which hold at least one run. The first chunks that are gathered, and the last ones that are
    // scattered, are smaller: the link waits for them. `blocks`: of a kernel. The offset table of
    // the runs is read when the kernels run. The other side is contiguous page-locked memory.
    void gather(std::byte* to, const Runs& from, std::size_t chunk, unsigned blocks);
    void scatter(const Runs& to, const std::byte* from, std::size_t chunk, unsigned blocks);
    // Enqueues copies of as many chunks as there are slots, of runs of `run` bytes. The following
    // calls of scatter() move all `bytes` in order, and enqueue the other copies early too.
    void load(const std::byte* from, std::size_t bytes, std::size_t run, std::size_t chunk);
    // As many more bytes follow those that were given to load(), all of which scatter() moves.
    void load_further(std::size_t bytes);
    // Whether a part of these bytes is left.
    [[nodiscard]] bool loads() const { return !loaded_.empty() || source_.bytes != 0; }
    // Copies a table to the device, for kernels that are enqueued later. It does not wait for the
    // moves.
    void upload(std::byte* to, const std::byte* from, std::size_t bytes);
    // Orders later kernels and copies after all earlier ones, also those that a failure left
    // unordered. Forgets what is loaded.
    void join();
    // The stream starts its later work after all moves.
    void finish_before(const gpu::Stream& stream);

    // The stream that the kernels are in. They follow the uploads of their tables.
    [[nodiscard]] const gpu::Stream& kernels() const { return kernels_; }
    // The stream of the last finish_before(); nullptr for none.
    [[nodiscard]] const void* last_stream() const { return last_stream_; }
    // Waits until all moves have ended, as settle() of a stream does.
    [[nodiscard]] Settled settle() const noexcept;
    // Whether all moves before the last finish_before() are done.
    [[nodiscard]] bool done() const { return !started_ || done_.done(); }

private:
    struct Slot {
        explicit Slot(int device);
        gpu::Event filled, emptied;
        bool used = false;
    };
    // Contiguous memory of the host.
    struct Source {
        const std::byte* data = nullptr;
        std::size_t bytes = 0;
        std::size_t run = 0;
        std::size_t chunk = 0;
    };
    // A chunk in a slot. The kernels for its first bytes are enqueued.
    struct Loaded {
        Slot* slot = nullptr;
        const std::byte* data = nullptr;
        std::size_t bytes = 0;
        std::size_t scattered = 0;
    };
    // Bytes of a chunk: whole runs, at least one.
    [[nodiscard]] std::size_t chunk_bytes(std::size_t needed, std::size_t most, std::size_t run,
                                          std::size_t left) const;
    // The next slot, and its staging memory.
    std::pair<Slot*, std::byte*> next_slot();
    // Enqueues copies of the source while slots are free of loaded chunks.
    void load_more();

    const PipelineShape shape_;
    std::byte* const staging_;
    const gpu::Stream kernels_;  // those that wait for the program's would let the link idle
    const gpu::Stream copies_;
    const gpu::Stream tables_;
    gpu::Event start_;
    gpu::Event uploaded_;
    gpu::Event joined_;
    gpu::Event done_;
    std::vector<Slot> slots_;
    std::size_t used_ = shape_.slots;   // of the slots
    std::size_t next_ = 0;              // slot
    std::size_t moved_ = 0, left_ = 0;  // bytes since start_after()
    Source source_;                     // that is not loaded yet
    std::deque<Loaded> loaded_;         // in order
    bool kernels_are_last_ = false;     // the last move ends with a kernel, not with a copy
    bool started_ = false;
    const void* last_stream_ = nullptr;
};

// A pipeline with its staging memory, within a budget.
class OwnPipeline {
public:
    // `share`: the bytes of the shape.
    OwnPipeline(int device, const PipelineShape& shape, BudgetShare share)
        : share_(std::move(share)),
          memory_(device, shape.bytes()),
          pipeline_(device, memory_.data(), shape) {}
    [[nodiscard]] ListPipeline& operator*() { return pipeline_; }
    [[nodiscard]] ListPipeline* operator->() { return &pipeline_; }

private:
    const BudgetShare share_;
    gpu::DeviceBuffer memory_;
    ListPipeline pipeline_;
};

}  // namespace waywiser::transfer
