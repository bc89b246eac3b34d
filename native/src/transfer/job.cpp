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

void Job::count() const {
    if (statistics_ == nullptr || method_ == WAYWISER_METHOD_NONE) return;
    const bool has_begun = begun_ != Statistics::Clock::time_point{};
    const auto taken = has_begun ? Statistics::Clock::now() - begun_ : std::chrono::nanoseconds(0);
    statistics_->count(method_, moved(), taken, end_of(failure_));
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
    return !ended() && !has_submitted();
}

// The runtime is called without the lock: it may block, and threads that end jobs need the lock.
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

void Job::open(const RingResources& resources, std::shared_ptr<const gpu::Event> start) {
    start_ = std::move(start);
    // Memory for slots that have no part would be taken in vain.
    const std::size_t parts = (division_.first + bytes_ + division_.slot - 1) / division_.slot;
    const std::size_t most = std::max<std::size_t>(parts, 1);
    const std::size_t all = std::min(division_.rings * routes_.size(), most);
    for (const Route& route : routes_) queues_.emplace_back(*this, route, resources);
    for (std::size_t n = 0; n < all; ++n) {
        const std::size_t route = n % routes_.size();
        rings_.emplace_back(*this, routes_[route], queues_[route], resources);
        queues_[route].add(rings_.back(), std::clamp<std::size_t>(division_.slots, 1, most));
    }
}

// Who has one link waits for the first bytes on it. Others share the work.
void Job::start_early() noexcept {
    if (rings_.size() != 1) return;
    try {
        rings_.front().start_early();
    } catch (...) {
        fail(std::current_exception());
    }
}

Step Job::work(std::size_t seat) {
    const Step step = work_on_rings(seat);
    if (step == Step::no_memory) {
        begin_staging_wait();
    } else {
        end_staging_wait();
    }
    return step;
}

// Of the job, which has no ring yet.
void Job::begin_staging_wait() {
    Statistics::Clock::duration none{0};
    staging_wait_.compare_exchange_strong(none, Statistics::Clock::now().time_since_epoch());
}

void Job::end_staging_wait() {
    const Statistics::Clock::duration none{0};
    if (staging_wait_.load(std::memory_order_relaxed) == none) return;
    const auto since = staging_wait_.exchange(none);
    if (since == none || statistics_ == nullptr) return;
    statistics_->count_staging_wait(Statistics::Clock::now().time_since_epoch() - since);
}

Step Job::work_on_rings(std::size_t seat) {
    bool awaits = false;
    for (std::size_t i = 0; i < rings_.size() && !is_stopped(); ++i) {
        Ring& ring = rings_[(seat + i) % rings_.size()];
        if (awaits) {
            ring.look();
            continue;
        }
        const Step step = ring.work();
        if (step == Step::yields || step == Step::submitted) return step;
        awaits = step == Step::awaits;
    }
    if (!is_stopped() && is_complete()) return Step::ends;
    if (awaits) return Step::awaits;
    return has_open_rings() || is_stopped() ? Step::nothing : Step::no_memory;
}

// While the GPU works on the last bytes, one thread waits for it, and one ends the job.
std::size_t Job::useful_threads() const {
    if (is_over()) return is_ending_ ? 0 : 1;
    if (work_ == CpuWork::none) return std::min(most_threads_, rings_.size());
    const std::size_t end = moved_or_expected();
    const std::size_t next = std::min(next_.load(), end);
    std::size_t pieces = (end - next + division_.piece - 1) / division_.piece;
    for (const Ring& ring : rings_) pieces += ring.pieces_left();
    return std::clamp<std::size_t>(pieces, 1, most_threads_);
}

Part Job::take_part() {
    std::size_t at = next_.load();
    for (;;) {
        const std::size_t most = moved_or_expected();
        if (at >= most) return {at, 0};
        const std::size_t slot = division_.slot;
        const std::size_t end =
            std::min((division_.first + at) / slot * slot + slot - division_.first, bytes_);
        if (next_.compare_exchange_weak(at, end)) return {at, end - at};
    }
}

bool Job::has_open_rings() const {
    return std::ranges::any_of(rings_, [](const Ring& ring) { return ring.is_open(); });
}

void Job::close_rings() noexcept {
    const bool is_broken = failed();
    Settled settled = Settled::yes;
    for (RouteQueue& queue : queues_) {
        const Settled now = queue.clear(is_broken);
        if (now == Settled::no) keep_in_use();
        if (now != Settled::yes) settled = now;
    }
    for (Ring& ring : rings_) ring.clear(settled);
    const std::lock_guard lock(mutex_);  // another thread may be in set_submitted()
    for (RouteQueue& queue : queues_) queue.drop_last_event();
    in_flight_.clear();
}

void Job::fail(std::exception_ptr why) {
    {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::move(why);
    }
    is_given_up_ = true;
}

bool Job::cancel(std::exception_ptr why) {
    {
        const std::lock_guard lock(mutex_);
        if (ended() || failure_ || (submitted_ && !drains())) return false;
        failure_ = std::move(why);
    }
    is_given_up_ = true;
    return true;
}

bool Job::failed() const {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(failure_);
}

// By the thread that has seen that all is submitted: no ring submits anything any more.
void Job::set_submitted() {
    const std::lock_guard lock(mutex_);
    if (ended()) return;
    for (const RouteQueue& queue : queues_) {
        if (auto last = queue.last_event()) in_flight_.push_back(std::move(last));
    }
    submitted_ = true;
    changed_.notify_all();
}

bool Job::reached(Until until) const {
    if (done()) return true;
    if (until == Until::done) return false;
    const std::lock_guard lock(mutex_);
    return has_submitted();
}

bool Job::wait_until(Until until, const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    return wait_until(lock, deadline,
                      [&] { return ended() || (until == Until::submitted && has_submitted()); });
}

void Job::ends_at(std::size_t bytes) {
    std::size_t known = end_.load();
    while (bytes < known && !end_.compare_exchange_weak(known, bytes)) {
    }
}

}  // namespace waywiser::transfer
