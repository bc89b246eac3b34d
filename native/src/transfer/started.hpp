// Transfers that were started, for callers that wait for them or ask for their end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transfer/caller_stream.hpp"
#include "transfer/engine.hpp"

namespace waywiser::transfer {

// A plain copy in progress: the event after it, and the jobs that watch the event for descriptors.
class WatchedEvent {
public:
    explicit WatchedEvent(gpu::Event event)
        : event_(std::make_shared<const gpu::Event>(std::move(event))) {}

    [[nodiscard]] const gpu::Event& event() const { return *event_; }
    // Whether the copy has ended, in success or failure, and all descriptors are written.
    [[nodiscard]] bool done();
    // See Started.
    bool wait(double seconds);
    void notify(int descriptor, Engine& engine);

private:
    [[nodiscard]] bool ended() const noexcept;
    [[nodiscard]] std::vector<std::shared_ptr<Job>> watches();

    const std::shared_ptr<const gpu::Event> event_;
    const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
    std::atomic<bool> watched_{false};
    std::mutex mutex_;
    std::vector<std::shared_ptr<Job>> watches_;
};

// A copy that was started: a job, a plain copy followed by an event, or nothing left to wait for.
// Thread safe.
class Started {
public:
    explicit Started(std::size_t bytes) : bytes_(bytes) {}
    Started(std::size_t bytes, gpu::Event after)
        : bytes_(bytes), plain_(std::make_shared<WatchedEvent>(std::move(after))) {}
    // `before`: bytes that have arrived, or will have, when the job starts.
    Started(std::shared_ptr<Engine> engine, std::shared_ptr<Job> job, std::size_t before = 0)
        : bytes_(before), engine_(std::move(engine)), job_(std::move(job)) {}

    // True once all descriptors are written: they can be closed then.
    [[nodiscard]] bool done() const;
    // Waits until done() for at most `seconds` (negative: without limit); false if it still runs.
    // Throws what the transfer failed with.
    bool wait(double seconds) const;
    // Bytes that have arrived by now.
    [[nodiscard]] std::size_t moved() const noexcept;
    // Like moved(), but only valid after wait() has returned true; makes no further query.
    [[nodiscard]] std::size_t moved_in_all() const { return bytes_ + (job_ ? job_->moved() : 0); }
    bool order(const gpu::Stream& stream, double seconds) const;
    // Orders a caller's stream after the copy; blocks like Job::order().
    bool order(const Engine& engine, const CallerStream& stream, double seconds) const;
    // Like order(), until the source is read; see Job::order_reads().
    bool order_reads(const Engine& engine, const CallerStream& stream, double seconds) const;
    [[nodiscard]] bool reads_pending() const { return job_ && job_->reads_pending(); }
    // Like Job::notify(). `engine` watches a plain copy, which has no thread of its own. If the
    // engine is stopped before the copy is done, the descriptor is written at once, and done() is
    // false then.
    void notify(int descriptor, Engine& engine) const;

private:
    // Calls order(stream) for a caller's stream, or waits for the end if there is none.
    template <class Order>
    bool order_in(const Engine& engine, const CallerStream& stream, double seconds,
                  const Order& order) const;

    std::size_t bytes_ = 0;
    std::shared_ptr<WatchedEvent> plain_;
    std::shared_ptr<Engine> engine_;
    std::shared_ptr<Job> job_;
};

}  // namespace waywiser::transfer
