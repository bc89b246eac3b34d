// Moves the bytes of a job over one route: CPUs fill or drain slots, and a GPU copies them.
//
// Threads join a job, and each takes pieces by a counter: that takes no lock. The pieces that CPUs
// copy are smaller than the slots, which a RouteQueue submits to the GPU in order. A thread that
// waits for the GPU has taken no piece, so that it can leave at any time, and another one goes on
// where it was.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "transfer/route.hpp"
#include "transfer/staging.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

class CopyStreams;
class EventPool;
class Job;
class PoliteQueues;
class RouteQueue;
class Schedule;
class StagingPools;

// What rings use of their engine, which outlives them.
struct RingResources {
    StagingPools& staging;
    const EventPool& events;
    CopyStreams& streams;
    PoliteQueues& queues;
    Schedule& schedule;
    double stay_seconds;  // for which a thread waits for the GPU before it leaves
};

// Why a thread has stopped to work on a ring or a job.
enum class Step {
    nothing,    // nothing is left for it
    ends,       // all bytes have arrived, and this thread ends the job
    awaits,     // the GPU has to copy first, or another thread has to do something
    submitted,  // the same, and all bytes have just been submitted: a caller may go on
    no_memory,  // others have all staging memory
    yields,     // a job without any thread waits
};

// Several threads work on it at once. Has no lock. Its counters have cache lines of their own.
class Ring {  // NOLINT(clang-analyzer-optin.performance.Padding)
public:
    // The job, its route and the queue of that route must outlive the ring.
    Ring(Job& job, const Route& route, RouteQueue& queue, const RingResources& resources);
    // Waits until no GPU uses its memory, if the job has never ended.
    ~Ring();
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    // Works until it has to stop. Throws what fails.
    Step work();
    // Does for it what takes no time, by a thread that waits for another ring. Throws what fails.
    void look();
    // By the caller, before other threads learn of the job: takes the memory if there is some, and
    // submits the first slot if no CPU has to fill it.
    void start_early();
    // Whether it has its memory.
    [[nodiscard]] bool is_open() const { return is_open_.load(std::memory_order_acquire); }
    // Number of pieces of its slots that no thread has taken.
    [[nodiscard]] std::size_t pieces_left() const;
    // No thread works on it any more: frees what it holds. `settled`: whether a GPU may still use
    // it.
    void clear(Settled settled) noexcept;

    // --- for the queue of its route; by one thread at a time

    // Slots in a row whose parts are neighbours.
    struct Run {
        Ring* ring = nullptr;
        std::size_t first = 0, end = 0;
        std::size_t bytes = 0;  // 0: no slot is ready
    };
    // Whether a slot can be submitted now. By any thread.
    [[nodiscard]] bool can_submit() const;
    // The next slot that is ready, or, with `joins`, as many as can be copied at once.
    [[nodiscard]] Run next_run(bool joins);
    // What the GPU has to copy, without the route, streams and events. No bytes: a file has ended
    // before.
    [[nodiscard]] Submission submission(const Run& run) const;
    void note_submitted(const Run& run) { submitted_.store(run.end, std::memory_order_release); }
    // The GPU has copied them. Returns how many bytes of them a file that ends early has.
    std::size_t note_arrived(const Run& run);

private:
    enum class Memory { ready, busy, none };
    [[nodiscard]] Memory open();
    [[nodiscard]] bool take_memory();
    // From now on it takes none. False if it was closed before.
    bool close() noexcept;

    struct Piece {
        std::size_t slot = 0;
        Part part;
    };
    enum class Take { taken, none, blocked };
    [[nodiscard]] Take take(Piece& piece);
    // The part of the transfer that is in the slot; only while the slot cannot be used again.
    [[nodiscard]] Part part_of(std::size_t slot) const;
    [[nodiscard]] std::size_t pieces_of(const Part& part) const;
    [[nodiscard]] std::byte* place_of(std::size_t slot, std::size_t at) const;
    [[nodiscard]] std::byte* bounce_of(std::size_t slot) const;
    // Whether the next bytes may be put into the slot: nothing uses what was in it before.
    [[nodiscard]] bool is_free(std::size_t slot) const;
    // Gives the next slot a part of the transfer, unless another thread does so.
    void open_slot();
    void move(const Piece& piece);
    [[nodiscard]] Step await_end();
    // Waits a moment for the GPU; false if nothing has changed then.
    template <class Condition>
    [[nodiscard]] bool await(const Condition& condition);
    [[nodiscard]] bool is_ready(std::size_t slot) const;
    std::size_t index(std::size_t slot) const { return slot % slots_; }

    Job& job_;
    const Route& route_;
    RouteQueue& queue_;
    const RingResources& resources_;
    const bool has_gpu_, fills_, drains_, has_pieces_;

    // Constant when the ring is open.
    std::size_t slots_ = 0;
    Slot memory_, bounce_;
    // Of each slot: its part of the transfer, and pieces that CPUs have not moved.
    std::vector<std::atomic<std::size_t>> begins_, ends_, left_;
    std::atomic<bool> taking_memory_{false};  // a thread does so
    bool is_closed_ = false;                  // guarded by it
    std::atomic<bool> is_open_{false};        // the ring has its memory
    std::atomic<bool> ending_{false};         // a thread waits for the last slot

    // Threads that wait look at some of these all the time. Each has a cache line of its own, so
    // that they do not slow down who changes the others.
    alignas(64) std::atomic<bool> opening_{false};       // a thread opens a slot
    alignas(64) std::atomic<std::size_t> opened_{0};     // number of slots with a part
    alignas(64) std::atomic<std::size_t> next_{0};       // piece that no CPU has taken
    alignas(64) std::atomic<std::size_t> submitted_{0};  // number of slots
    alignas(64) std::atomic<std::size_t> arrived_{0};    // number of slots that the GPU has copied
};

}  // namespace waywiser::transfer
