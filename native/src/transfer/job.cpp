#include "transfer/job.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "host/write_signals.hpp"

namespace waywiser::transfer {
namespace {

// How a job with that failure has ended.
Statistics::End end_of(const std::exception_ptr& failure) {
    if (!failure) return Statistics::End::done;
    try {
        std::rethrow_exception(failure);
    } catch (const Cancelled&) {
        return Statistics::End::cancelled;
    } catch (...) {
        return Statistics::End::failed;
    }
}

}  // namespace

int write_notification(int descriptor) noexcept {
    const host::WriteSignalsHeld held;
    const std::uint64_t one = 1;
    while (::write(descriptor, &one, sizeof one) < 0) {
        if (errno == EAGAIN) return 0;
        if (errno != EINTR) return errno;
    }
    return 0;
}

void Notification::job_ended() noexcept {
    if (left_.fetch_sub(1) != 1) return;
    if (call_) {
        call_();
    } else {
        error_ = write_notification(descriptor_);
    }
}

MemoryInUse::MemoryInUse(const std::string& why)
    : std::runtime_error(why + "; a GPU may still use the memory of both sides: do not free it") {}

std::size_t Job::moved() const {
    const std::lock_guard lock(mutex_);
    return moved_now();
}

void Job::count() const {
    if (statistics_ == nullptr || method_ == WAYWISER_METHOD_NONE) return;
    const bool has_begun = begun_ != Statistics::Clock::time_point{};
    const auto taken = has_begun ? Statistics::Clock::now() - begun_ : std::chrono::nanoseconds(0);
    statistics_->count(method_, moved_now(), taken, end_of(failure_));
}

bool Job::notifications_written() const {
    const std::lock_guard lock(mutex_);  // held while they are written
    return true;
}

// The descriptors come first: a caller that sees the end may close them. A caller that reads one of
// them waits in done() until all are written.
void Job::end() {
    std::vector<std::shared_ptr<Notification>> notified;
    {
        const std::lock_guard lock(mutex_);
        if (!ended()) count();
        submitted_ = true;
        notified.swap(notified_);
        if (!notified.empty()) {
            state_.store(State::notifying, std::memory_order_release);
            std::erase_if(notified, [](const auto& one) {
                if (!one->comes_before_end()) return false;
                one->job_ended();
                return true;
            });
        }
        state_.store(State::done, std::memory_order_release);
        changed_.notify_all();
    }
    for (const auto& one : notified) one->job_ended();
}

template <class Condition>
bool Job::wait_until(std::unique_lock<std::mutex>& lock, const Deadline& deadline,
                     Condition condition) {
    if (deadline.is_limited()) return changed_.wait_until(lock, deadline.end(), condition);
    changed_.wait(lock, condition);
    return true;
}

bool Job::wait(const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    return wait_until(lock, deadline, [this] { return ended(); });
}

bool Job::order(const gpu::Stream& stream, const Deadline& deadline) {
    return order(stream, deadline, Order::whole);
}

bool Job::order_reads(const gpu::Stream& stream, const Deadline& deadline) {
    return order(stream, deadline, Order::reads);
}

bool Job::reads_pending() const {
    const std::lock_guard lock(mutex_);
    return !ended() && !all_submitted();
}

// The runtime is called without the lock: it may block, and threads that end chunks need the lock.
bool Job::order(const gpu::Stream& stream, const Deadline& deadline, Order what) {
    std::unique_lock lock(mutex_);
    const auto ready = [this, what] {
        return ended() || (submitted_ && (what == Order::reads || !drains()));
    };
    if (!wait_until(lock, deadline, ready)) return false;
    const bool has_failed = static_cast<bool>(failure_);
    const auto in_flight = in_flight_;
    lock.unlock();
    if (has_failed) {
        if (!wait(deadline)) return false;
        rethrow();
    }
    for (const auto& event : in_flight) gpu::wait(stream, *event);
    return true;
}

void Job::rethrow() const {
    std::exception_ptr failure;
    {
        const std::lock_guard lock(mutex_);
        failure = failure_;
    }
    if (!failure) return;
    if (!in_use_) std::rethrow_exception(failure);
    try {
        std::rethrow_exception(failure);
    } catch (const MemoryInUse&) {
        throw;
    } catch (const std::exception& error) {
        throw MemoryInUse(error.what());
    }
}

void Job::notify(std::shared_ptr<Notification> notification) {
    {
        const std::lock_guard lock(mutex_);
        if (!ended()) {
            notified_.push_back(std::move(notification));
            return;
        }
    }
    notification->job_ended();
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

bool Job::cancel(std::exception_ptr why) {
    {
        const std::lock_guard lock(mutex_);
        if (ended() || failure_ || (submitted_ && !drains())) return false;
        failure_ = std::move(why);
    }
    ends_at(0);
    return true;
}

bool Job::failed() const {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(failure_);
}

void Job::add_in_flight(std::shared_ptr<const gpu::Event> event) {
    const std::lock_guard lock(mutex_);
    in_flight_.push_back(std::move(event));
}

bool Job::remove_in_flight(const std::shared_ptr<gpu::Event>& event) {
    const std::lock_guard lock(mutex_);
    std::erase(in_flight_, event);
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

bool Job::wait_until(Until until, const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    return wait_until(lock, deadline,
                      [&] { return ended() || (until == Until::submitted && all_submitted()); });
}

void Job::ends_at(std::size_t bytes) {
    std::size_t known = end_.load();
    while (bytes < known && !end_.compare_exchange_weak(known, bytes)) {
    }
}

}  // namespace waywiser::transfer
