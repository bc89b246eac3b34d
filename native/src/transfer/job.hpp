// A transfer that is cut into slots, which GPUs copy, and pieces, which CPUs copy. Rings move them.
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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/ring.hpp"
#include "transfer/route.hpp"
#include "transfer/route_queue.hpp"
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

// What CPUs do with the bytes of a job.
enum class CpuWork {
    none,    // a GPU reaches both sides
    fills,   // they fill slots, which a GPU copies
    drains,  // they drain slots, which a GPU has copied
    all,     // they copy from the source to the destination
};

// How the bytes of a job are cut.
struct Division {
    std::size_t slot = 1;         // a GPU copies at once
    std::size_t piece = 1;        // a CPU copies at once; divides `slot`
    std::size_t slot_memory = 0;  // of a slot with what belongs to it; 0: `slot`
    std::size_t first = 0;        // of the first byte from the last border before it, in a piece
    std::size_t slots = 1;        // of each ring, or fewer
    std::size_t rings = 1;        // of each route, one for each thread if there are several
    bool joins = false;           // neighbours in the ring are submitted together

    [[nodiscard]] std::size_t memory_of_slot() const { return std::max(slot, slot_memory); }
    [[nodiscard]] std::size_t pieces_of_slot() const { return (slot + piece - 1) / piece; }
};

// A job's settings are constant after its constructor. Each function says who may call it and when;
// the functions for callers and for the engine are thread safe.
class Job {
public:
    // `bytes` are cut into slots and pieces, whose borders are multiples of their sizes, counted
    // from `division.first` bytes before the first one.
    explicit Job(std::size_t bytes = 0, const Division& division = {}, CpuWork work = CpuWork::none)
        : bytes_(bytes), division_(division), work_(work) {}
    virtual ~Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // Called on a CPU: copies a piece into its place in a slot, or to the destination without one.
    virtual void fill(const Part&, std::byte*) {}
    // Enqueues on the streams without blocking. All of them have the same streams.
    virtual void submit(std::span<const Submission>) {}
    // Called on a CPU when the GPU has copied the piece: copies it from its place in a slot.
    virtual void drain(const Part&, const std::byte*) {}
    // Called once when all bytes are complete, before waiters are notified. May throw.
    virtual void finish() {}
    // Called once after that, also if the job has failed or was cancelled: frees what it holds.
    virtual void clear() noexcept {}

    // --- settings

    [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] const Division& division() const { return division_; }
    [[nodiscard]] std::size_t pieces() const {
        return (division_.first + bytes_ + division_.piece - 1) / division_.piece;
    }
    [[nodiscard]] CpuWork cpu_work() const { return work_; }
    // Whether CPUs write the destination: the host must then wait for the whole transfer.
    [[nodiscard]] bool drains() const { return work_ == CpuWork::drains || work_ == CpuWork::all; }
    [[nodiscard]] std::size_t most_threads() const { return most_threads_; }
    [[nodiscard]] int node() const { return node_; }
    [[nodiscard]] waywiser_method method() const { return method_; }
    // Before it starts: the method as which it is counted; WAYWISER_METHOD_NONE: not at all.
    void count_as(waywiser_method method) { method_ = method; }

    // --- for callers; thread safe

    // True once all descriptors are written: they can be closed then.
    [[nodiscard]] bool done() const {
        const State state = state_.load(std::memory_order_acquire);
        return state == State::done || (state == State::notifying && notifications_written());
    }
    // Bytes that are complete; of a file that ends early, those before its end.
    [[nodiscard]] std::size_t moved() const { return moved_.load(std::memory_order_relaxed); }
    // The same, counting those in flight: all bytes, or those before the end of a file. 0 after a
    // failure.
    [[nodiscard]] std::size_t moved_or_expected() const {
        return is_given_up_.load() ? 0 : std::min(bytes_, end_.load());
    }
    // Waits until the job has ended; false if it has not before the deadline.
    bool wait(const Deadline& deadline = {});
    // Waits until all bytes are submitted or the job has ended, then makes the stream wait for what
    // is in flight. Returns false after the deadline, like wait().
    bool order(const gpu::Stream& stream, const Deadline& deadline = {});
    // The same, but makes the stream wait only until the source is read: it may be changed then,
    // though the destination may not be filled yet.
    bool order_reads(const gpu::Stream& stream, const Deadline& deadline = {});
    // Whether order_reads() would block the host now: an event that a stream waits for must have
    // been recorded, which is so when all bytes are submitted.
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
    // (nullptr: at once). What it uses must outlive it, or the job must end before.
    void open(const RingResources& resources, std::shared_ptr<const gpu::Event> start);
    [[nodiscard]] bool waits() const { return start_ != nullptr; }
    // Whether `start` has happened. Throws gpu::Error if that cannot be found out.
    [[nodiscard]] bool started() { return start_query_.has_happened(*start_); }
    // The job starts now. Only with the lock of the Schedule held.
    void begin() { begun_ = Statistics::Clock::now(); }
    // By the caller, after open() and before threads learn of it.
    void start_early() noexcept;
    // Works on it until there is a reason to stop. `seat`: another number for each thread, which
    // has another route then. Throws what fails.
    Step work(std::size_t seat);
    // Whether a GPU may use memory of it.
    [[nodiscard]] bool has_open_rings() const;
    // Threads that it can use now, all together; 0 if one ends it.
    [[nodiscard]] std::size_t useful_threads() const;
    // No thread has to do anything any more: all bytes are complete, or the job was given up.
    [[nodiscard]] bool is_over() const { return is_stopped() || is_complete(); }
    // True once: for the thread that ends the job.
    [[nodiscard]] bool begin_end() { return !is_ending_.exchange(true); }

    // From now on it only ends. The first reason counts.
    void fail(std::exception_ptr why);
    [[nodiscard]] bool failed() const;
    // The same for a program that has lost interest. False, and nothing done, if the job has ended
    // or failed, or if all bytes are submitted and CPUs have nothing left to do.
    [[nodiscard]] bool cancel(std::exception_ptr why);
    // A GPU that does not answer may use the memory of both sides.
    void keep_in_use() { in_use_ = true; }
    [[nodiscard]] bool is_in_use() const { return in_use_; }
    // Frees what rings hold. Called once, when no thread moves bytes, before clear().
    void close_rings() noexcept;
    void set_submitted();
    // Whether the job is done, or all bytes are submitted if that is enough and nothing has failed.
    [[nodiscard]] bool reached(Until until) const;
    // False if it has not reached that before the deadline.
    bool wait_until(Until until, const Deadline& deadline);
    // All bytes are complete, or the job has failed: wakes those who wait for it.
    void end();

    // --- for its rings

    // The next part of the transfer, for one slot; no bytes if none is left.
    [[nodiscard]] Part take_part();
    // No part is left to take.
    [[nodiscard]] bool has_all_parts() const { return next_.load() >= moved_or_expected(); }
    // A failure, a cancellation, or a file that is empty.
    [[nodiscard]] bool is_stopped() const { return moved_or_expected() == 0; }
    // How many bytes of the part a file that ends early has.
    [[nodiscard]] std::size_t before_end(const Part& part) const {
        const std::size_t end = end_.load();
        return std::min(part.end(), end) - std::min(part.at, end);
    }
    void note_submitted(std::size_t bytes) { submitted_bytes_.fetch_add(bytes); }
    // Bytes of parts, and how many of them a file that ends early has.
    void note_complete(std::size_t bytes, std::size_t moved) {
        moved_.fetch_add(moved, std::memory_order_relaxed);
        complete_.fetch_add(bytes);
    }
    // All parts are taken and submitted.
    [[nodiscard]] bool all_submitted() const {
        return has_all_parts() && submitted_bytes_.load() == next_.load();
    }
    // True once: for the thread that reports that.
    [[nodiscard]] bool begin_announcement() { return !is_announced_.exchange(true); }

protected:
    std::vector<Route> routes_;
    // Maximum of threads that work on it at once, and their preferred NUMA node.
    std::size_t most_threads_ = std::numeric_limits<std::size_t>::max();
    int node_ = -1;
    waywiser_method method_ = WAYWISER_METHOD_NONE;
    // Sets an earlier end than expected, if a file is shorter. Called by fill().
    void ends_at(std::size_t bytes);

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
    // With the mutex held: all bytes are submitted, and nothing has failed.
    [[nodiscard]] bool has_submitted() const { return submitted_ && !failure_; }
    [[nodiscard]] bool is_complete() const {
        return has_all_parts() && complete_.load() == next_.load();
    }
    void count() const;
    Step work_on_rings(std::size_t seat);
    void begin_staging_wait();
    void end_staging_wait();

    const std::size_t bytes_;
    const Division division_;
    const CpuWork work_;

    Statistics* statistics_ = nullptr;
    Statistics::Clock::time_point begun_;
    std::shared_ptr<const gpu::Event> start_;
    EventQuery start_query_;
    std::deque<RouteQueue> queues_;  // of each route; constant after open()
    std::deque<Ring> rings_;         // of each route; constant after open()

    std::atomic<std::size_t> next_{0};  // first byte that is in no part yet
    std::atomic<std::size_t> submitted_bytes_{0};
    std::atomic<std::size_t> complete_{0};  // bytes of parts
    std::atomic<std::size_t> moved_{0};
    std::atomic<std::size_t> end_{std::numeric_limits<std::size_t>::max()};  // of a file
    std::atomic<Statistics::Clock::duration> staging_wait_;  // since when; 0: it has some
    std::atomic<bool> is_given_up_{false};
    std::atomic<bool> is_announced_{false};
    std::atomic<bool> is_ending_{false};
    std::atomic<bool> in_use_{false};

    mutable std::mutex mutex_;  // guards the following; nothing else is locked with it held
    std::condition_variable changed_;
    bool submitted_ = false;  // all bytes are submitted
    std::vector<std::shared_ptr<const gpu::Event>> in_flight_;
    std::exception_ptr failure_;
    std::vector<std::shared_ptr<Notification>> notified_;

    std::atomic<State> state_{State::running};  // changed with the mutex held
};

// The transfer did not start because its engine was stopped, or its program has cancelled it.
class Cancelled : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace waywiser::transfer
