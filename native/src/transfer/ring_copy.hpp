// A copy between pageable memory or a file and a GPU through a ring of pinned slots.
//
// Threads that take chunks from the schedule wait for each other at its lock and at the driver's:
// that costs 10 to 30 us for each chunk (measured on H100). Here each thread joins the copy once,
// and then takes pieces by a counter. The pieces that CPUs copy are smaller than the slots, which
// the GPU copies. One thread at a time submits slots, in order, and one asks whether the oldest
// call has ended. A thread that waits for the GPU has taken no piece, so that it can leave at any
// time; it has to leave when the ring cannot progress.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "transfer/chunked_copy.hpp"
#include "transfer/engine.hpp"
#include "transfer/file_end.hpp"
#include "transfer/job.hpp"
#include "transfer/staging.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// Its chunks, one for each thread, only let threads join: fill() works on any piece that is left.
class RingCopy final : public Job {
public:
    // One side is on a GPU, the other in pageable memory or in a file. By at most `shape.threads`
    // threads. The GPU copies `shape.chunk` bytes at once, a CPU `shape.least`, a part of them;
    // both are multiples of disk blocks. The ring has `shape.slots` slots, or as many as fit into
    // the staging memory that is free when it starts: now if nothing is before it (`at_once`). What
    // a stream holds back has none. The engine must outlive the job. Throws gpu::Error.
    static std::shared_ptr<RingCopy> make(Engine& engine, const Endpoint& to, const Endpoint& from,
                                          std::size_t bytes, const CopyShape& shape, bool at_once);

    ~RingCopy() override;
    RingCopy(const RingCopy&) = delete;
    RingCopy& operator=(const RingCopy&) = delete;

    void fill(Chunk& chunk) override;
    [[nodiscard]] bool drains() const override { return !to_gpu_; }
    [[nodiscard]] bool waits_in_fill() const override { return true; }
    void finish() override;
    void clear() noexcept override;

private:
    RingCopy(Engine& engine, const Endpoint& to, const Endpoint& from, std::size_t bytes,
             const CopyShape& shape);
    [[nodiscard]] bool open();

    // What a thread has found when it has no piece to copy.
    enum class Left {
        nothing,   // no piece is left, or the copy has failed
        to_end,    // the same, and this thread ends the job
        to_await,  // the GPU has to copy first, or others have all staging memory
    };

    // Bytes of the copy, from the first to the one after the last.
    struct Part {
        std::size_t begin = 0, end = 0;
        [[nodiscard]] std::size_t bytes() const { return end - begin; }
    };
    // Part `number` of those of `each` bytes. Their borders are those of blocks in a file.
    [[nodiscard]] Part part(std::size_t number, std::size_t each) const;
    // The slot of the byte, counted over the whole copy, and its place in the ring.
    [[nodiscard]] std::size_t slot_of(std::size_t byte) const;
    [[nodiscard]] std::byte* place_of(std::size_t byte) const;
    [[nodiscard]] std::size_t pieces_of(std::size_t slot) const;
    [[nodiscard]] std::atomic<std::size_t>& progress_of(std::size_t slot) {
        return progress_[slot % slots_];
    }
    // Takes the next piece; false if another thread has.
    bool take(std::size_t& piece);
    void fill_piece(const Part& piece);
    void drain_piece(const Part& piece);
    [[nodiscard]] Left fill_slots(const Chunk& chunk);
    [[nodiscard]] Left await_end(const Chunk& chunk);
    [[nodiscard]] Left drain_slots();
    // Submits slots until none is ready, unless another thread does so.
    void submit_ready();
    [[nodiscard]] bool is_ready(std::size_t slot);
    void submit_next();
    void submit(std::size_t first, std::size_t end);
    void submit_first();
    // Waits a moment; false if the GPU has not copied so many slots then.
    [[nodiscard]] bool await_arrival(std::size_t slots);
    void query_oldest();
    void settle() noexcept;

    // A thread has failed, or the program has cancelled the copy.
    [[nodiscard]] bool is_stopped() const { return broken_ || moved_or_expected() == 0; }

    Engine& engine_;
    const double stay_seconds_;  // for which a thread waits for the GPU before it leaves
    const Endpoint to_, from_;
    const bool stream_slots_, direct_io_, sync_, truncate_;
    std::optional<FileEnd> source_file_, target_file_;
    const bool to_gpu_;
    const int device_;
    const std::size_t skew_;  // of the first byte in the first slot
    const std::size_t slot_bytes_;
    const std::size_t piece_bytes_;
    const std::size_t submissions_, pieces_;  // slots and pieces of the whole copy
    gpu::Stream& stream_;
    // Constant when the ring is open.
    std::size_t slots_;  // of the ring
    Slot memory_;        // of all slots
    // Of each slot of the ring: bytes that are filled, to a GPU; pieces that are drained, from it.
    std::vector<std::atomic<std::size_t>> progress_;
    // Of each call of the runtime, of which at most one for each slot of the ring has not ended:
    // the event after it, and the number of slots up to it.
    std::vector<std::shared_ptr<gpu::Event>> events_;
    std::vector<std::size_t> ends_;
    std::shared_ptr<gpu::Event> last_event_;  // after all calls

    // Threads that wait look at some of these all the time. Each has a cache line of its own, so
    // that they do not slow down who changes the others.
    alignas(64) std::atomic<bool> opening_{false};       // a thread takes the memory
    alignas(64) std::atomic<bool> is_open_{false};       // the ring has its memory
    alignas(64) std::atomic<bool> submitting_{false};    // a thread submits slots
    alignas(64) std::atomic<std::size_t> submitted_{0};  // number of slots
    alignas(64) std::atomic<std::size_t> calls_{0};      // number of calls of the runtime
    alignas(64) std::atomic<bool> querying_{false};      // a thread asks whether one has ended
    alignas(64) std::atomic<std::size_t> ended_{0};      // number of calls that have ended
    alignas(64) std::atomic<std::size_t> arrived_{0};    // number of slots that the GPU has copied
    alignas(64) std::atomic<std::size_t> next_{0};       // piece that no CPU has taken
    alignas(64) std::atomic<std::size_t> drained_{0};    // number of pieces at the destination
    alignas(64) std::atomic<const Chunk*> ender_{nullptr};    // whose thread waits for the end
    alignas(64) std::atomic<bool> is_ending_{false};          // that thread ends the job
    alignas(64) std::atomic<bool> broken_{false};             // a thread has failed
    alignas(64) std::atomic<Settled> settled_{Settled::yes};  // whether a GPU may use the memory
};

}  // namespace waywiser::transfer
