// A copy of few bytes between pageable memory and a GPU by threads that are awake.
//
// Threads that take chunks from the schedule wait for each other at its lock and at the driver's:
// that costs 10 to 30 us for each chunk (measured on H100). Here each thread joins the copy once,
// and then takes pieces by a counter. The pieces that CPUs copy are smaller than the copies of the
// GPU, of which few are submitted, and one thread at a time asks whether they have ended. A thread
// that waits for the GPU has taken no piece, so that it can leave at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "transfer/chunked_copy.hpp"
#include "transfer/engine.hpp"
#include "transfer/job.hpp"
#include "transfer/staging.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// Its chunks, one for each thread, only let threads join: fill() works on any piece that is left.
class AwakeCopy final : public Job {
public:
    // One side is on a GPU, the other in pageable memory. By at most `shape.threads` threads. The
    // GPU copies `shape.chunk` bytes at once, a CPU `shape.least`. nullptr if there is no staging
    // memory for all bytes now, or too little would be left for others. The engine must outlive the
    // job. Throws gpu::Error.
    static std::shared_ptr<AwakeCopy> make(Engine& engine, const Endpoint& to, const Endpoint& from,
                                           std::size_t bytes, const CopyShape& shape);

    ~AwakeCopy() override;
    AwakeCopy(const AwakeCopy&) = delete;
    AwakeCopy& operator=(const AwakeCopy&) = delete;

    void fill(Chunk& chunk) override;
    [[nodiscard]] bool drains() const override { return !to_gpu_; }
    [[nodiscard]] bool waits_in_fill() const override { return true; }
    void finish() override;
    void clear() noexcept override;

private:
    AwakeCopy(Engine& engine, const Endpoint& to, const Endpoint& from, std::size_t bytes,
              const CopyShape& shape, Slot slot);

    // The bytes of a piece to a GPU or of a submission.
    [[nodiscard]] std::size_t bytes_of(std::size_t number, std::size_t each) const;
    [[nodiscard]] bool fill_pieces();
    [[nodiscard]] bool submit_filled(std::size_t submission);
    void submit_first();
    void submit_next();
    enum class Drained { all, until_last_piece, none_arrives };
    [[nodiscard]] Drained drain_pieces();
    [[nodiscard]] bool has_arrived(std::size_t submission);
    void settle() noexcept;

    std::byte* const to_;
    const std::byte* const from_;
    const bool to_gpu_;
    const int device_;
    const std::size_t submission_;  // bytes of a copy of the GPU
    const std::size_t piece_;       // bytes that a CPU copies at once; a part of a submission
    const std::size_t submissions_, pieces_;  // numbers
    gpu::Stream& stream_;
    Slot slot_;                                        // for all bytes
    std::vector<std::shared_ptr<gpu::Event>> events_;  // after each submission to the host
    // Of each submission: bytes that are filled, to a GPU; pieces that CPUs have taken, from it.
    std::vector<std::atomic<std::size_t>> progress_;

    // Threads that wait look at some of these all the time. Each has a cache line of its own, so
    // that they do not slow down who changes the others.
    alignas(64) std::atomic<bool> submitting_{false};    // a thread submits what goes to the host
    alignas(64) std::atomic<std::size_t> submitted_{0};  // number of submissions
    alignas(64) std::atomic<bool> querying_{false};      // a thread asks whether one has ended
    alignas(64) std::atomic<std::size_t> arrived_{0};    // number of submissions that have ended
    alignas(64) std::atomic<std::size_t> next_{0};       // piece to a GPU that no CPU has copied
    alignas(64) std::atomic<std::size_t> drained_{0};    // number of pieces at the destination
    alignas(64) std::atomic<bool> broken_{false};        // a thread has failed
    alignas(64) std::atomic<Settled> settled_{Settled::yes};  // whether a GPU may use the slot
};

}  // namespace waywiser::transfer
