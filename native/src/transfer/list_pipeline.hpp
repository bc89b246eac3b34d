// Moves lists whose host side is contiguous: a kernel gathers or scatters chunks in staging memory
// of the GPU, while a copy engine moves other chunks over the link.
//
// A kernel that accesses host memory occupies multiprocessors for as long as the link takes. One
// that moves bytes within the GPU needs them for a fraction of that time, and the copy engine
// reaches the bandwidth of a contiguous copy.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/gpu.hpp"
#include "gpu/priority_stream.hpp"
#include "transfer/move_runs.hpp"

namespace waywiser::transfer {

struct PipelineShape {
    std::size_t chunk = std::size_t{4} << 20;  // bytes of staging memory for one chunk
    std::size_t slots = 3;                     // chunks in staging memory
    unsigned blocks = 8;                       // of a kernel
    [[nodiscard]] std::size_t bytes() const { return chunk * slots; }
};

// Used by one thread at a time. Its moves are ordered among themselves, and with the work of other
// streams only by start_after() and finish_before().
class ListPipeline {
public:
    // `staging` has shape.bytes(), of the device, and outlives this.
    ListPipeline(int device, std::byte* staging, const PipelineShape& shape);
    // Waits for all moves.
    ~ListPipeline();
    ListPipeline(const ListPipeline&) = delete;
    ListPipeline& operator=(const ListPipeline&) = delete;

    [[nodiscard]] const PipelineShape& shape() const { return shape_; }

    // Later moves start after the work that is in the stream now.
    void start_after(const gpu::Stream& stream);
    // Enqueue the moves of all runs, in chunks of at most `chunk` bytes (and those of the shape),
    // which hold at least one run. `blocks`: of a kernel. The offset table of the runs is read when
    // the kernels run. The other side is contiguous page-locked memory.
    void gather(std::byte* to, const Runs& from, std::size_t chunk, unsigned blocks);
    void scatter(const Runs& to, const std::byte* from, std::size_t chunk, unsigned blocks);
    // Copies a table to the device, for moves that are enqueued later. Each direction uses the
    // stream in which this delays copies least.
    void upload(std::byte* to, const std::byte* from, std::size_t bytes, bool to_host);
    // Orders later kernels and copies after all earlier ones, also those that a failure left
    // unordered.
    void join();
    // The stream starts its later work after all moves.
    void finish_before(const gpu::Stream& stream);

    // The stream that the kernels are in. They follow the uploads of their tables.
    [[nodiscard]] const gpu::Stream& kernels() const { return *kernels_; }
    // The stream of the last finish_before(); nullptr for none.
    [[nodiscard]] const void* last_stream() const { return last_stream_; }
    // Whether all moves before the last finish_before() are done.
    [[nodiscard]] bool done() const { return !started_ || done_.done(); }

private:
    struct Slot {
        explicit Slot(int device);
        gpu::Event filled, emptied;
        bool used = false;
    };
    // Calls move(slot, memory, first, count) for the runs of each chunk.
    template <class Move>
    void for_each_chunk(const Runs& runs, std::size_t chunk, const Move& move);

    const PipelineShape shape_;
    std::byte* const staging_;
    const gpu::PriorityStream
        kernels_;  // those that wait for the program's would let the link idle
    const gpu::Stream copies_;
    gpu::Event start_;
    gpu::Event joined_;
    gpu::Event done_;
    std::vector<Slot> slots_;
    std::size_t next_ = 0;  // slot
    bool started_ = false;
    const void* last_stream_ = nullptr;
};

// A pipeline with its staging memory.
class OwnPipeline {
public:
    explicit OwnPipeline(int device, const PipelineShape& shape)
        : memory_(device, shape.bytes()), pipeline_(device, memory_.data(), shape) {}
    [[nodiscard]] ListPipeline& operator*() { return pipeline_; }
    [[nodiscard]] ListPipeline* operator->() { return &pipeline_; }

private:
    gpu::DeviceBuffer memory_;
    ListPipeline pipeline_;
};

}  // namespace waywiser::transfer
