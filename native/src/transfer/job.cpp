#include "transfer/job.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

namespace waywiser::transfer {
namespace {

// Seconds that count as no limit: longer times exceed the range of the clock.
constexpr double kForever = 1e9;

}  // namespace

void write_notifications(const std::vector<int>& descriptors) {
    for (const int descriptor : descriptors) {
        const std::uint64_t one = 1;
        while (::write(descriptor, &one, sizeof one) < 0 && errno == EINTR) {
        }
    }
}

std::size_t Job::moved() const {
    const std::size_t complete = moved_.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    return failure_ ? complete : std::min(complete, end_.load());
}

bool Job::notifications_written() const {
    const std::lock_guard lock(mutex_);  // held while they are written
    return true;
}

// The descriptors come first: a caller that sees the end may close them. A caller that reads one of
// them waits in done() until all are written.
void Job::end() {
    const std::lock_guard lock(mutex_);
    submitted_ = true;
    if (!notified_.empty()) {
        state_.store(State::notifying, std::memory_order_release);
        write_notifications(notified_);
        notified_.clear();
    }
    state_.store(State::done, std::memory_order_release);
    changed_.notify_all();
}

template <class Condition>
bool Job::wait_until(std::unique_lock<std::mutex>& lock, double seconds, Condition condition) {
    if (seconds < 0 || seconds > kForever) {
        changed_.wait(lock, condition);
        return true;
    }
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds), condition);
}

bool Job::wait(double seconds) {
    std::unique_lock lock(mutex_);
    return wait_until(lock, seconds, [this] { return ended(); });
}

bool Job::order(const gpu::Stream& stream, double seconds) {
    return order(stream, seconds, Order::whole);
}

bool Job::order_reads(const gpu::Stream& stream, double seconds) {
    return order(stream, seconds, Order::reads);
}

bool Job::reads_pending() const {
    const std::lock_guard lock(mutex_);
    return !ended() && !all_submitted();
}

bool Job::order(const gpu::Stream& stream, double seconds, Order what) {
    std::unique_lock lock(mutex_);
    const auto ready = [this, what] {
        return ended() || (submitted_ && (what == Order::reads || !drains()));
    };
    if (!wait_until(lock, seconds, ready)) return false;
    if (failure_) {
        lock.unlock();
        wait();
        rethrow();
    }
    for (const gpu::Event* event : in_flight_) gpu::wait(stream, *event);
    return true;
}

void Job::rethrow() const {
    std::exception_ptr failure;
    {
        const std::lock_guard lock(mutex_);
        failure = failure_;
    }
    if (failure) std::rethrow_exception(failure);
}

void Job::notify(int descriptor) {
    {
        const std::lock_guard lock(mutex_);
        if (!ended()) {
            notified_.push_back(descriptor);
            return;
        }
    }
    write_notifications({descriptor});
}

void Job::open(std::shared_ptr<const gpu::Event> start) {
    supply_.open(std::move(start));
    if (gathers_) batches_.resize(routes_.size());
}

void Job::fail(std::exception_ptr why) {
    {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::move(why);
    }
    ends_at(0);
}

bool Job::failed() const {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(failure_);
}

void Job::add_in_flight(const gpu::Event& event) {
    const std::lock_guard lock(mutex_);
    in_flight_.push_back(&event);
}

bool Job::remove_in_flight(const gpu::Event& event) {
    const std::lock_guard lock(mutex_);
    std::erase(in_flight_, &event);
    return static_cast<bool>(failure_);
}

void Job::set_submitted() {
    const std::lock_guard lock(mutex_);
    submitted_ = true;
    changed_.notify_all();
}

bool Job::reached(Until until) const {
    if (done()) return true;
    if (until == Until::done) return false;
    const std::lock_guard lock(mutex_);
    return all_submitted();
}

void Job::wait_until(Until until) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended() || (until == Until::submitted && all_submitted()); });
}

void Job::ends_at(std::size_t bytes) {
    std::size_t known = end_.load();
    while (bytes < known && !end_.compare_exchange_weak(known, bytes)) {
    }
}

}  // namespace waywiser::transfer
