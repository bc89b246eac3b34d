// A transfer that is cut into chunks. Each chunk is filled by a CPU, submitted to GPUs and drained
// by a CPU; a job needs one to three of these steps.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/batch.hpp"
#include "transfer/chunk.hpp"
#include "transfer/chunk_supply.hpp"
#include "transfer/statistics.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// What is done when several jobs have ended.
class Notification {
public:
    // Writes an eight-byte 1 to a descriptor, before anyone sees the end of the last job.
    Notification(int descriptor, std::size_t jobs) : descriptor_(descriptor), left_(jobs) {}
    // Calls a function that throws nothing, after that, without any lock.
    Notification(std::function<void()> call, std::size_t jobs)
        : call_(std::move(call)), left_(jobs) {}
    [[nodiscard]] bool comes_before_end() const { return call_ == nullptr; }
    // One of the jobs has ended. Thread safe.
    void job_ended() noexcept;
    // Why the descriptor could not be written: errno; 0 if it was, or was not yet.
    [[nodiscard]] int error() const { return error_; }

private:
    const std::function<void()> call_;
    const int descriptor_ = -1;
    std::atomic<std::size_t> left_;
    std::atomic<int> error_{0};
};
// Returns errno, or 0. A descriptor that is full has been written before: that is no error.
int write_notification(int descriptor) noexcept;

// A GPU may still use the memory of a transfer that has failed, or was given up.
class MemoryInUse : public std::runtime_error {
public:
    // `why`: what has happened, without a full stop.
    // Not inlined: GCC 12 warns of the bounds of a text that it has joined itself.
    [[gnu::noinline]] explicit MemoryInUse(const std::string& why);
};

// A job's settings are constant after its constructor. Each function says who may call it and when;
// the functions for callers and for the engine are thread safe.
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

    // Called on a CPU before submit(): copies the bytes into the slot, or to a host destination. It
    // is called again later if it sets `unfinished` of the chunk.
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
    // Whether fill() may wait for a GPU.
    [[nodiscard]] virtual bool waits_in_fill() const { return false; }
    // Called once when all chunks are done, or fill() has set `ends_job` of one, before waiters are
    // notified. May throw.
    virtual void finish() {}
    // Called once after that, also if the job has failed or was cancelled: frees what it holds.
    virtual void clear() noexcept {}

    // --- settings

    [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t chunk() const { return chunk_; }
    [[nodiscard]] std::size_t least() const { return least_; }
    [[nodiscard]] std::size_t first() const { return first_; }
    // Maximum number of chunks.
    [[nodiscard]] std::size_t chunks() const { return (first_ + bytes_ + least_ - 1) / least_; }
    [[nodiscard]] std::size_t most_threads() const { return most_threads_; }
    [[nodiscard]] int node() const { return node_; }
    [[nodiscard]] std::size_t chunks_per_thread() const { return chunks_per_thread_; }
    [[nodiscard]] bool fills() const { return fills_; }
    [[nodiscard]] bool gathers() const { return gathers_; }
    [[nodiscard]] bool two_links() const { return two_links_; }
    [[nodiscard]] waywiser_method method() const { return method_; }
    // Before it starts: the method as which it is counted; WAYWISER_METHOD_NONE: not at all.
    void count_as(waywiser_method method) { method_ = method; }

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
    // Waits until the job has ended; false if it has not before the deadline.
    bool wait(const Deadline& deadline = {});
    // Waits until all chunks are submitted or the job has ended, then makes the stream wait for the
    // chunks in flight. Returns false after the deadline, like wait().
    bool order(const gpu::Stream& stream, const Deadline& deadline = {});
    // The same, but makes the stream wait only until the source is read: it may be changed then,
    // though the destination may not be filled yet.
    bool order_reads(const gpu::Stream& stream, const Deadline& deadline = {});
    // Whether order_reads() would block the host now: an event that a stream waits for must have
    // been recorded, which is so when all chunks are submitted.
    [[nodiscard]] bool reads_pending() const;
    // Throws what the job failed with, MemoryInUse if keep_in_use() was called; does nothing if it
    // succeeded.
    void rethrow() const;
    // Counts the end of the job, at once if it has ended. done() is true after that.
    void notify(std::shared_ptr<Notification> notification);

    // --- for the engine

    enum class Until { submitted, done };
    // Called once, before open(): where the job is counted when it has ended.
    void count_in(Statistics& statistics) { statistics_ = &statistics; }
    // Called once, before the job is shared between threads. It starts when `start` has happened
    // (nullptr: at once).
    void open(std::shared_ptr<const gpu::Event> start);
    // The job starts now. Only with the lock of the Schedule held, as the next two.
    void begin() { begun_ = Statistics::Clock::now(); }
    [[nodiscard]] ChunkSupply& supply() { return supply_; }
    [[nodiscard]] const ChunkSupply& supply() const { return supply_; }
    // Of a route of a job that gathers.
    [[nodiscard]] RouteBatches& batches(std::size_t route) { return batches_[route]; }

    // From now on its chunks are only completed. The first reason counts.
    void fail(std::exception_ptr why);
    [[nodiscard]] bool failed() const;
    // The same for a program that has lost interest. False, and nothing done, if the job has ended
    // or failed, or if all chunks are submitted and need no drain().
    [[nodiscard]] bool cancel(std::exception_ptr why);
    // A GPU that does not answer may use the memory of both sides.
    void keep_in_use() { in_use_ = true; }
    [[nodiscard]] bool is_in_use() const { return in_use_; }
    // The event follows a submitted chunk.
    void add_in_flight(std::shared_ptr<const gpu::Event> event);
    // Returns whether the job has failed.
    bool remove_in_flight(const std::shared_ptr<gpu::Event>& event);
    void add_moved(std::size_t bytes) { moved_.fetch_add(bytes, std::memory_order_relaxed); }
    void set_submitted();
    // Whether the job is done, or all chunks are submitted if that is enough and nothing has
    // failed.
    [[nodiscard]] bool reached(Until until) const;
    // False if it has not reached that before the deadline.
    bool wait_until(Until until, const Deadline& deadline);
    // All chunks are complete, or the job has failed: wakes those who wait for it.
    void end();

protected:
    std::vector<Route> routes_;
    // Maximum of threads that work on it at once, and their preferred NUMA node.
    std::size_t most_threads_ = std::numeric_limits<std::size_t>::max();
    int node_ = -1;
    std::size_t chunks_per_thread_ = 3;  // in flight at once
    bool fills_ = false;                 // CPUs fill chunks for a link
    bool gathers_ = false;               // ready chunks are submitted together
    bool two_links_ = false;             // each chunk crosses two links in turn
    waywiser_method method_ = WAYWISER_METHOD_NONE;
    // Sets an earlier end than expected, if a file is shorter. Called by fill().
    void ends_at(std::size_t bytes);
    // Nothing counts as moved, after a failure that was found after all chunks.
    void forget_moved() { moved_.store(0, std::memory_order_relaxed); }

private:
    enum class State { running, notifying, done };

    // With the lock held. False if the condition is not met before the deadline.
    template <class Condition>
    bool wait_until(std::unique_lock<std::mutex>& lock, const Deadline& deadline,
                    Condition condition);
    enum class Order { whole, reads };
    bool order(const gpu::Stream& stream, const Deadline& deadline, Order what);
    // Waits until the descriptors are written.
    [[nodiscard]] bool notifications_written() const;
    // With the mutex held: no transition is in progress then.
    [[nodiscard]] bool ended() const { return state_.load() != State::running; }
    // With the mutex held: all chunks are submitted, and nothing has failed.
    [[nodiscard]] bool all_submitted() const { return submitted_ && !failure_; }
    // With the mutex held, as the next one: see moved().
    [[nodiscard]] std::size_t moved_now() const {
        const std::size_t complete = moved_.load(std::memory_order_relaxed);
        return failure_ ? complete : std::min(complete, end_.load());
    }
    void count() const;

    const std::size_t bytes_;
    const std::size_t chunk_;
    const std::size_t least_;
    const std::size_t first_;

    Statistics* statistics_ = nullptr;
    Statistics::Clock::time_point begun_;  // with the supply guarded by the engine's Schedule
    ChunkSupply supply_{*this};
    std::deque<RouteBatches> batches_;  // of each route, if the job gathers; they have their locks

    mutable std::mutex mutex_;  // guards the following; nothing else is locked with it held
    std::condition_variable changed_;
    bool submitted_ = false;  // all chunks are submitted
    std::vector<std::shared_ptr<const gpu::Event>> in_flight_;
    std::exception_ptr failure_;
    std::vector<std::shared_ptr<Notification>> notified_;

    std::atomic<bool> in_use_{false};
    std::atomic<std::size_t> moved_{0};
    std::atomic<std::size_t> end_{std::numeric_limits<std::size_t>::max()};
    std::atomic<State> state_{State::running};  // changed with the mutex held
};

// The transfer did not start because its engine was stopped, or its program has cancelled it.
class Cancelled : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace waywiser::transfer
