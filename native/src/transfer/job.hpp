// A transfer that is cut into chunks. Each chunk is filled by a CPU, submitted to GPUs and drained
// by a CPU; a job needs one to three of these steps.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/staging.hpp"

namespace waywiser::transfer {

// The copy engine of a GPU that a chunk occupies: from the host, to the host, or to and from peers.
enum class Direction { in, out, peer };

// A route for chunks of a job.
struct Route {
    int device = -1;  // whose stream carries the chunk; -1: only CPUs move it
    Direction direction = Direction::in;
    int second_device = -1;  // continues on another stream after the first
    Direction second_direction = Direction::in;
    std::size_t slot_bytes = 0;    // pinned staging for a chunk; 0: none
    std::size_t bounce_bytes = 0;  // staging on `device` for a chunk; 0: none
    std::size_t most_chunks = std::numeric_limits<std::size_t>::max();  // in flight at once
};

// Chunks submitted by one call.
struct Batch {
    std::optional<gpu::Event> event;     // after the last of them
    std::optional<gpu::Event> handover;  // between two devices
    std::size_t bytes = 0;
    bool failed = false;              // they were not submitted, or not completed
    std::atomic<bool> ended = false;  // none of them is in flight any more
};

// A chunk in flight.
struct Chunk {
    std::size_t at = 0;       // offset in the transfer
    std::size_t bytes = 0;    // fill() reduces it at the end of a file
    std::size_t claimed = 0;  // `bytes` before fill()
    std::size_t route = 0;
    Slot slot;
    Slot bounce;
    gpu::Stream* stream = nullptr;   // of the route's device
    gpu::Stream* second = nullptr;   // of its second device
    gpu::Event* handover = nullptr;  // between the two, for submit()
    std::size_t skew = 0;            // offset of the chunk in its slot
    std::shared_ptr<Batch> batch;    // for a job that gathers; guarded by the job's mutex
};

class Job {
public:
    // `bytes` are cut into chunks of at most `chunk` bytes. The last chunks are smaller, down to
    // `least`, so that no thread is left working alone at the end. If CPUs fill chunks for a link,
    // the first ones are smaller too, so that the link starts sooner. Borders are multiples of
    // `least`, counted from a multiple of it at or before `first` (for files: the offset).
    Job(std::size_t bytes, std::size_t chunk, std::size_t least, std::size_t first = 0)
        : bytes_(bytes), chunk_(chunk), least_(std::min(least, chunk)), first_(first % least_) {}
    virtual ~Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // Called on a CPU before submit(): copies the bytes into the slot, or to a host destination.
    virtual void fill(Chunk&) {}
    // Enqueues on the chunk's streams without blocking. Called if the route has a device.
    virtual void submit(Chunk&) {}
    // The same for several chunks of one route, with one call if possible. Only for a job that
    // gathers.
    virtual void submit_together(std::span<Chunk* const>) {}
    // Called on a CPU after the submitted work is done.
    virtual void drain(Chunk&) {}
    // Whether drain() has work to do: the host must then wait for the whole transfer.
    [[nodiscard]] virtual bool drains() const { return false; }
    // Called once when all chunks are done, before waiters are notified. May throw.
    virtual void finish() {}

    [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t chunk() const { return chunk_; }
    // Maximum number of chunks.
    [[nodiscard]] std::size_t chunks() const { return (first_ + bytes_ + least_ - 1) / least_; }
    [[nodiscard]] int node() const { return node_; }

    // --- for callers; thread safe

    // True once all descriptors are written: they can be closed then.
    [[nodiscard]] bool done() const {
        const State state = state_.load(std::memory_order_acquire);
        return state == State::done || (state == State::notifying && notifications_written());
    }
    // Bytes whose chunks are complete; for a file that ends early, those before its end.
    [[nodiscard]] std::size_t moved() const;
    // The same, counting chunks in flight: all bytes, or those before the end of a file.
    [[nodiscard]] std::size_t moved_or_expected() const { return std::min(bytes_, end_.load()); }
    // Waits until the job has ended; false if it has not within `seconds` (negative: no limit).
    bool wait(double seconds = -1);
    // Waits until all chunks are submitted or the job has ended, then makes the stream wait for the
    // chunks in flight. Returns false after `seconds`, like wait().
    bool order(const gpu::Stream& stream, double seconds = -1);
    // Throws what the job failed with; does nothing if it succeeded.
    void rethrow() const;
    // Writes an eight-byte 1 to the descriptor once, when the job ends, or at once if it has ended.
    // done() is true after the write.
    void notify(int descriptor);

protected:
    std::vector<Route> routes_;
    // Maximum of threads that work on it at once, and their preferred NUMA node.
    std::size_t most_threads_ = std::numeric_limits<std::size_t>::max();
    int node_ = -1;
    std::size_t chunks_per_thread_ = 3;  // in flight at once
    bool fills_ = false;                 // CPUs fill chunks for a link
    bool gathers_ = false;               // ready chunks are submitted together
    bool two_links_ = false;             // each chunk crosses two links in turn
    // Sets an earlier end than expected, if a file is shorter. Called by fill().
    void ends_at(std::size_t bytes);

private:
    friend class Engine;
    enum class State { running, notifying, done };

    // With the lock held. False if the condition is not met within `seconds`.
    template <class Condition>
    bool wait_until(std::unique_lock<std::mutex>& lock, double seconds, Condition condition);
    // Waits until the descriptors are written.
    [[nodiscard]] bool notifications_written() const;
    // With the mutex held: no transition is in progress then.
    [[nodiscard]] bool ended() const { return state_.load() != State::running; }
    void end();

    const std::size_t bytes_;
    const std::size_t chunk_;
    const std::size_t least_;
    const std::size_t first_;

    // Guarded by the engine's mutex.
    std::shared_ptr<const gpu::Event> start_;  // in the stream that the transfer follows
    std::size_t next_ = 0;                     // first byte that belongs to no chunk yet
    std::vector<std::pair<std::size_t, std::size_t>>
        returned_;                   // chunks that got no staging memory
    std::size_t incomplete_ = 0;     // chunks that are not complete
    std::size_t not_submitted_ = 0;  // of these, chunks that are not submitted
    std::vector<std::size_t> on_route_;
    std::size_t threads_ = 0;  // threads that work on it
    std::size_t turn_ = 0;     // route that is tried first

    // Guarded by its own mutex.
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool submitted_ = false;  // all chunks are submitted
    std::vector<const gpu::Event*> in_flight_;
    std::exception_ptr failure_;
    std::vector<int> notified_;
    std::atomic<std::size_t> moved_{0};
    std::atomic<std::size_t> end_{std::numeric_limits<std::size_t>::max()};
    std::atomic<State> state_{State::running};

    // State of a route whose chunks are submitted together.
    struct Gathering {
        std::vector<Chunk*> ready;                   // not submitted; guarded by the job's mutex
        std::mutex submitting;                       // held by the one thread that submits them
        std::deque<std::shared_ptr<Batch>> batches;  // in flight; guarded by `submitting`
    };
    std::deque<Gathering> gathering_;  // of each route
};

// Writes an eight-byte 1 to each of the descriptors.
void write_notifications(const std::vector<int>& descriptors);

// The transfer did not start because its engine was stopped.
class Cancelled : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace waywiser::transfer
