// Transfers that were started, for callers that wait for them or ask for their end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transfer/caller_stream.hpp"
#include "transfer/engine.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// A plain copy in progress: the event after it, and the jobs that watch the event for descriptors.
class WatchedEvent {
public:
    explicit WatchedEvent(std::shared_ptr<const gpu::Event> event) : event_(std::move(event)) {}

    [[nodiscard]] const gpu::Event& event() const { return *event_; }
    // Whether the event has happened. Throws gpu::Error if that cannot be found out.
    [[nodiscard]] bool happened() { return query_.has_happened(*event_); }
    // Whether the copy has ended, in success or failure, and all descriptors are written.
    [[nodiscard]] bool done();
    // See Completion.
    bool wait(const Deadline& deadline);
    void notify(const std::shared_ptr<Notification>& notification, Engine& engine);

private:
    [[nodiscard]] bool ended() noexcept;
    // False if it has not happened before the deadline.
    bool wait_for_event(const Deadline& deadline);
    [[nodiscard]] std::vector<std::shared_ptr<Job>> watches();

    const std::shared_ptr<const gpu::Event> event_;
    const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
    EventQuery query_;
    std::atomic<bool> watched_{false};
    std::mutex mutex_;
    std::vector<std::shared_ptr<Job>> watches_;
};

// A transfer that was started: jobs, plain copies followed by an event, or nothing left to wait
// for. Thread safe, except for add().
class Completion {
public:
    // The bytes have arrived.
    explicit Completion(std::size_t bytes) : bytes_(bytes) {}
    // `after`: an event after plain copies.
    Completion(std::size_t bytes, std::shared_ptr<const gpu::Event> after)
        : bytes_(bytes), plain_(std::make_shared<WatchedEvent>(std::move(after))) {}
    Completion(std::shared_ptr<Engine> engine, std::shared_ptr<Job> job)
        : engine_(std::move(engine)), jobs_({std::move(job)}) {}
    // Adds what another one has of the same transfer. Plain copies of both are in one stream, those
    // of the other one later.
    void add(Completion other);

    // True once all descriptors are written: they can be closed then.
    [[nodiscard]] bool done() const;
    // Waits until done(); false if it still runs at the deadline. Throws what the transfer failed
    // with, when all of it has ended.
    bool wait(const Deadline& deadline) const;
    // Bytes that have arrived by now.
    [[nodiscard]] std::size_t moved() const noexcept;
    // Like moved(), but only valid after wait() has returned true; makes no further query.
    [[nodiscard]] std::size_t moved_in_all() const { return bytes_ + moved_by_jobs(); }
    bool order(const gpu::Stream& stream, const Deadline& deadline) const;
    // Orders a caller's stream after the copy; blocks like Job::order().
    bool order(const Engine& engine, const CallerStream& stream, const Deadline& deadline) const;
    // Like order(), until the source is read; see Job::order_reads().
    bool order_reads(const Engine& engine, const CallerStream& stream,
                     const Deadline& deadline) const;
    [[nodiscard]] bool reads_pending() const;
    // Writes an eight-byte 1 to the descriptor once, when all has ended, or at once if it has.
    // `engine` watches a plain copy, which has no thread of its own. If the engine is stopped
    // before the copy is done, the descriptor is written at once, and done() is false then. Throws
    // FileError if it had to be written at once and could not be. Where the system starts no
    // thread, the calling one waits for a plain copy, and NotSupported is thrown after 5 s.
    void notify(int descriptor, Engine& engine) const;
    // Calls a function that throws nothing once, with a copy of this, when all has ended: by a
    // thread of the library without any lock, or at once if it has.
    void on_end(std::function<void(const Completion&)> call, Engine& engine) const;
    // Ends jobs early; see Engine::cancel(). Plain copies go on.
    void cancel() const;
    // Bytes of the whole transfer.
    [[nodiscard]] std::size_t bytes() const;

private:
    // Calls order(stream) for a caller's stream, or waits for the end if there is none.
    template <class Order>
    bool order_in(const Engine& engine, const CallerStream& stream, const Deadline& deadline,
                  const Order& order) const;
    [[nodiscard]] std::size_t moved_by_jobs() const noexcept;
    // The number of jobs that end, a plain copy among them.
    [[nodiscard]] std::size_t parts() const { return jobs_.size() + (plain_ ? 1 : 0); }
    void notify(const std::shared_ptr<Notification>& notification, Engine& engine) const;

    std::size_t bytes_ = 0;  // of plain copies
    std::shared_ptr<WatchedEvent> plain_;
    std::shared_ptr<Engine> engine_;
    std::vector<std::shared_ptr<Job>> jobs_;
};

// Writes the descriptor for a transfer that has ended. Throws FileError.
void notify_ended(int descriptor);

// To be called while an exception is handled that ends the call which has started a transfer: waits
// until it has ended, and throws the exception again; MemoryInUse if it has not in time.
[[noreturn]] void rethrow_when_ended(const Completion& started);

}  // namespace waywiser::transfer
