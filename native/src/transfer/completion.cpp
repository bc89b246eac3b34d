#include "transfer/completion.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "transfer/file_end.hpp"
#include "transfer/ordering.hpp"

namespace waywiser::transfer {
namespace {

// With a time limit the calling thread spins first, as the runtime does while it waits for a
// stream: a sleep of 20 us takes 100 us and more on a virtual machine. It spins for as long as 2
// GiB take over a PCIe 5.0 link.
constexpr Polling kPlainCopy{.spin = std::chrono::milliseconds(50),
                             .pause = std::chrono::microseconds(2),
                             .sleep = std::chrono::microseconds(20)};

void check_notified(int descriptor, int error) {
    if (error == 0) return;
    throw FileError("notifying by descriptor " + std::to_string(descriptor), error);
}

}  // namespace

void notify_ended(int descriptor) { check_notified(descriptor, write_notification(descriptor)); }

bool WatchedEvent::ended() noexcept {
    try {
        return happened();
    } catch (const gpu::Error&) {
        return true;
    }
}

// Polling time counts from when the event was recorded, over all waits.
bool WatchedEvent::wait_for_event(const Deadline& deadline) {
    if (deadline.is_limited()) {
        return poll([this] { return happened(); }, deadline, kPlainCopy, made_);
    }
    event_->synchronize();
    query_.note_happened();
    return true;
}

std::vector<std::shared_ptr<Job>> WatchedEvent::watches() {
    if (!watched_) return {};
    const std::lock_guard lock(mutex_);
    return watches_;
}

bool WatchedEvent::done() {
    return ended() && std::ranges::all_of(watches(), [](const auto& job) { return job->done(); });
}

bool WatchedEvent::wait(const Deadline& deadline) {
    try {
        if (!wait_for_event(deadline)) return false;
    } catch (const gpu::Error& error) {
        const Settled now = settle(*event_);  // it could not be queried
        for (const auto& job : watches()) {
            if (!job->wait(deadline)) return false;
        }
        if (now == Settled::no) throw MemoryInUse(error.what());
        throw;
    }
    return std::ranges::all_of(watches(), [&](const auto& job) { return job->wait(deadline); });
}

void WatchedEvent::notify(const std::shared_ptr<Notification>& notification, Engine& engine) {
    if (ended()) return notification->job_ended();
    if (!engine.has_threads()) {
        const Deadline end(engine.options().unresponsive_seconds);
        if (poll([&] { return ended(); }, end, kPlainCopy)) {
            return notification->job_ended();
        }
        throw NotSupported(
            "nothing can wait for the end of the copy, which takes longer than 5 s: " +
            engine.why_no_threads());
    }
    // A job of no bytes starts, and ends, with the event.
    const auto watch = std::make_shared<Job>();
    watch->notify(notification);
    const std::lock_guard lock(mutex_);
    watched_ = true;  // first: a thread that sees the end of the event waits here
    watches_.reserve(watches_.size() + 1);
    try {
        engine.start(watch, event_);
    } catch (const Cancelled&) {  // the engine was stopped
        return notification->job_ended();
    }
    watches_.push_back(watch);
}

void Completion::add(Completion other) {
    bytes_ += other.bytes_;
    if (other.plain_) plain_ = std::move(other.plain_);
    if (other.engine_) engine_ = std::move(other.engine_);
    std::ranges::move(other.jobs_, std::back_inserter(jobs_));
}

void rethrow_when_ended(const Completion& started) {
    const auto ends = [&] {
        try {
            return started.wait(Deadline(kUnresponsiveSeconds));
        } catch (const MemoryInUse&) {
            return false;
        } catch (const std::exception&) {
            return true;  // it has failed too
        }
    };
    if (ends()) throw;
    try {
        throw;
    } catch (const std::exception& error) {
        throw MemoryInUse(error.what());
    }
}

bool Completion::done() const {
    return std::ranges::all_of(jobs_, [](const auto& job) { return job->done(); }) &&
           (!plain_ || plain_->done());
}

bool Completion::wait(const Deadline& deadline) const {
    if (plain_ && jobs_.empty()) return plain_->wait(deadline);
    for (const auto& job : jobs_) {
        if (!job->wait(deadline)) return false;
    }
    if (plain_ && !plain_->wait(deadline)) return false;
    for (const auto& job : jobs_) job->rethrow();
    return true;
}

std::size_t Completion::moved_by_jobs() const noexcept {
    std::size_t moved = 0;
    for (const auto& job : jobs_) moved += job->moved();
    return moved;
}

std::size_t Completion::moved() const noexcept {
    try {
        // Jobs start after plain copies of the same transfer.
        const std::size_t moved = moved_by_jobs();
        const bool arrived = plain_ ? plain_->happened() : moved > 0 || done();
        return (arrived ? bytes_ : 0) + moved;
    } catch (const gpu::Error&) {
        return moved_by_jobs();
    }
}

bool Completion::reads_pending() const {
    return std::ranges::any_of(jobs_, [](const auto& job) { return job->reads_pending(); });
}

bool Completion::order(const gpu::Stream& stream, const Deadline& deadline) const {
    for (const auto& job : jobs_) {
        if (!job->order(stream, deadline)) return false;
    }
    if (plain_) gpu::wait(stream, plain_->event());
    return true;
}

void Completion::notify(const std::shared_ptr<Notification>& notification, Engine& engine) const {
    for (const auto& job : jobs_) job->notify(notification);
    if (plain_) plain_->notify(notification, engine);
}

void Completion::notify(int descriptor, Engine& engine) const {
    if (parts() == 0) return notify_ended(descriptor);
    const auto notification = std::make_shared<Notification>(descriptor, parts());
    notify(notification, engine);
    check_notified(descriptor, notification->error());
}

void Completion::on_end(std::function<void(const Completion&)> call, Engine& engine) const {
    if (parts() == 0) return call(*this);
    notify(std::make_shared<Notification>([call = std::move(call), self = *this] { call(self); },
                                          parts()),
           engine);
}

void Completion::cancel() const {
    for (const auto& job : jobs_) engine_->cancel(job);
}

std::size_t Completion::bytes() const {
    std::size_t bytes = bytes_;
    for (const auto& job : jobs_) bytes += job->bytes();
    return bytes;
}

template <class Order>
bool Completion::order_in(const Engine& engine, const CallerStream& stream,
                          const Deadline& deadline, const Order& order) const {
    if (stream.none) return wait(deadline);
    const Ordering known = ordering(engine, stream, 0);
    if (known.capturing) {
        throw NotSupported(
            "the stream is being captured: a graph cannot wait for a transfer that is not part of "
            "it; order the stream before the capture");
    }
    return known.stream ? order(*known.stream) : wait(deadline);
}

bool Completion::order(const Engine& engine, const CallerStream& stream,
                       const Deadline& deadline) const {
    return order_in(engine, stream, deadline,
                    [&](const gpu::Stream& used) { return order(used, deadline); });
}

bool Completion::order_reads(const Engine& engine, const CallerStream& stream,
                             const Deadline& deadline) const {
    return order_in(engine, stream, deadline, [&](const gpu::Stream& used) {
        for (const auto& job : jobs_) {
            if (!job->order_reads(used, deadline)) return false;
        }
        if (plain_) gpu::wait(used, plain_->event());
        return true;
    });
}

}  // namespace waywiser::transfer
