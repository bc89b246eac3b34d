#include "transfer/started.hpp"

#include <algorithm>
#include <thread>

#include "host/relax.hpp"
#include "transfer/ordering.hpp"

namespace waywiser::transfer {
namespace {

constexpr auto kPoll = std::chrono::microseconds(20);  // polling interval with a time limit
// Before that the calling thread spins, as the runtime does while it waits for a stream: a sleep of
// 20 us takes 100 us and more on a virtual machine. It spins for as long as 2 GiB take over a PCIe
// 5.0 link, and yields the CPU now and then: the scheduler lets a thread that yields all the time
// wait for others.
constexpr auto kBetweenLooks = std::chrono::microseconds(2);
constexpr unsigned kLooksBetweenYields = 64;
constexpr auto kLooking = std::chrono::milliseconds(50);

// Waits for the event, at most `seconds` (negative: without limit). `made`: when the event was
// recorded; polling time counts from then, over all waits.
bool wait_for_event(const gpu::Event& event, double seconds,
                    std::chrono::steady_clock::time_point made) {
    if (seconds < 0) {
        event.synchronize();
        return true;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto until = start + std::chrono::duration<double>(seconds);
    for (unsigned looks = 1; !event.done(); ++looks) {
        const auto now = std::chrono::steady_clock::now();
        if (now >= until) return false;
        if (now - made < kLooking) {
            if (looks % kLooksBetweenYields == 0) std::this_thread::yield();
            do {
                host::relax();
            } while (std::chrono::steady_clock::now() - now < kBetweenLooks);
        } else {
            std::this_thread::sleep_for(kPoll);
        }
    }
    return true;
}

}  // namespace

bool WatchedEvent::ended() const noexcept {
    try {
        return event_->done();
    } catch (const gpu::Error&) {
        return true;
    }
}

std::vector<std::shared_ptr<Job>> WatchedEvent::watches() {
    if (!watched_) return {};
    const std::lock_guard lock(mutex_);
    return watches_;
}

bool WatchedEvent::done() {
    return ended() && std::ranges::all_of(watches(), [](const auto& job) { return job->done(); });
}

bool WatchedEvent::wait(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    try {
        if (!wait_for_event(*event_, seconds, made_)) return false;
    } catch (const gpu::Error&) {
        try {
            event_->synchronize();  // it could not be queried: nothing is in flight after this
        } catch (const gpu::Error&) {
        }
        for (const auto& job : watches()) job->wait();
        throw;
    }
    for (const auto& job : watches()) {
        const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
        if (!job->wait(seconds < 0 ? seconds : std::max(seconds - gone.count(), 0.0))) return false;
    }
    return true;
}

void WatchedEvent::notify(int descriptor, Engine& engine) {
    if (ended()) return write_notifications({descriptor});
    // A job of no bytes starts, and ends, with the event.
    const auto watch = std::make_shared<Job>(0, 1, 1);
    watch->notify(descriptor);
    const std::lock_guard lock(mutex_);
    watched_ = true;  // first: a thread that sees the end of the event waits here
    watches_.reserve(watches_.size() + 1);
    try {
        engine.start(watch, event_);
    } catch (const Cancelled&) {  // the engine was stopped
        return write_notifications({descriptor});
    }
    watches_.push_back(watch);
}

bool Started::done() const {
    if (job_) return job_->done();
    return !plain_ || plain_->done();
}

bool Started::wait(double seconds) const {
    if (plain_) return plain_->wait(seconds);
    if (!job_) return true;
    if (!job_->wait(seconds)) return false;
    job_->rethrow();
    return true;
}

std::size_t Started::moved() const noexcept {
    if (job_) {
        const std::size_t moved = job_->moved();
        return moved > 0 || job_->done() ? bytes_ + moved : 0;
    }
    try {
        return !plain_ || plain_->event().done() ? bytes_ : 0;
    } catch (const gpu::Error&) {
        return 0;
    }
}

bool Started::order(const gpu::Stream& stream, double seconds) const {
    if (job_) return job_->order(stream, seconds);
    if (plain_) gpu::wait(stream, plain_->event());
    return true;
}

void Started::notify(int descriptor, Engine& engine) const {
    if (job_) return job_->notify(descriptor);
    if (plain_) return plain_->notify(descriptor, engine);
    write_notifications({descriptor});
}

template <class Order>
bool Started::order_in(const Engine& engine, const CallerStream& stream, double seconds,
                       const Order& order) const {
    if (stream.none) return wait(seconds);
    const Ordering known = ordering(engine, stream, 0);
    if (known.capturing) {
        throw NotSupported(
            "the stream is being captured: a graph cannot wait for a transfer that is not part of "
            "it; order the stream before the capture");
    }
    return known.stream ? order(*known.stream) : wait(seconds);
}

bool Started::order(const Engine& engine, const CallerStream& stream, double seconds) const {
    return order_in(engine, stream, seconds,
                    [&](const gpu::Stream& used) { return order(used, seconds); });
}

bool Started::order_reads(const Engine& engine, const CallerStream& stream, double seconds) const {
    return order_in(engine, stream, seconds, [&](const gpu::Stream& used) {
        return job_ ? job_->order_reads(used, seconds) : order(used, seconds);
    });
}

}  // namespace waywiser::transfer
