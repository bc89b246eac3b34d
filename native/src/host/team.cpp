#include "team.hpp"

#include <utility>

#include "affinity.hpp"
#include "clock.hpp"
#include "relax.hpp"
#include "start_thread.hpp"

namespace waywiser::host {
namespace {

// How long a thread spins for awake threads before it sleeps: waking takes tens of microseconds.
constexpr double kSpinSeconds = 100e-6;
// How long an idle thread spins for more work before it sleeps: waking it would be visible in the
// time of a short copy by several threads.
constexpr double kLingerSeconds = 0.002;
constexpr int kSpinsPerClock = 64;
// Spins before yielding: with fewer cores than threads another one must run.
constexpr int kSpinsPerYield = 4096;

// Returns when reached(value) is true. The thread that sets the value must notify.
template <class Reached>
void await(const std::atomic<unsigned>& value, const Reached& reached) {
    unsigned seen = value.load(std::memory_order_acquire);
    if (reached(seen)) return;
    const double until = now() + kSpinSeconds;
    for (int spins = 1; !reached(seen); ++spins) {
        if (spins % kSpinsPerClock != 0 || now() < until) {
            relax();
        } else {
            value.wait(seen, std::memory_order_acquire);
        }
        seen = value.load(std::memory_order_acquire);
    }
}

}  // namespace

Team::Team(std::vector<std::vector<int>> cpus) {
    threads_.reserve(cpus.size());
    try {
        for (std::size_t i = 0; i < cpus.size(); ++i) {
            threads_.push_back(start_thread([this, i, own = std::move(cpus[i])] { work(i, own); }));
        }
    } catch (...) {  // the system gives no more threads: stop those that wait
        end();
        throw;
    }
}

Team::~Team() { end(); }

void Team::end() {
    ending_ = true;
    raise(signal_ + 2);
    ++armed_;
    armed_.notify_all();
}

void Team::raise(unsigned signal) {
    signal_.store(signal, std::memory_order_release);
    signal_.notify_all();
}

// Returns the round to be armed.
unsigned Team::prepare(const std::function<void(std::size_t)>& job) {
    while (taken_.exchange(true)) taken_.wait(true);
    job_ = &job;
    failure_ = nullptr;
    ready_ = 0;
    awake_ = 0;
    busy_ = static_cast<unsigned>(threads_.size());
    return armed_ + 1;
}

void Team::arm(const std::function<void(std::size_t)>& job) {
    const unsigned round = prepare(job);
    armed_ = round;
    armed_.notify_all();
    const auto all = [this](unsigned count) { return count == threads_.size(); };
    await(ready_, all);
    // The first ones may sleep again by now.
    raise(look(round));
    await(awake_, all);
}

void Team::release() { raise(go(armed_)); }

void Team::wait() {
    for (unsigned left = busy_.load(); left != 0; left = busy_.load()) busy_.wait(left);
    finish();
}

void Team::start(const std::function<void(std::size_t)>& job) {
    const unsigned round = prepare(job);
    signal_.store(go(round), std::memory_order_release);  // before any thread looks at it
    armed_ = round;
    armed_.notify_all();
}

void Team::join() {
    await(busy_, [](unsigned left) { return left == 0; });
    finish();
}

// Lets the next caller in.
void Team::finish() {
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    taken_ = false;
    taken_.notify_one();
    if (failure) std::rethrow_exception(failure);
}

// Returns when a round after the last one is armed.
void Team::await_round(unsigned last) const {
    const double until = now() + kLingerSeconds;
    for (int spins = 1; armed_.load(std::memory_order_acquire) == last; ++spins) {
        if (spins % kSpinsPerClock != 0) {
            relax();
        } else if (now() < until) {
            if (spins % kSpinsPerYield == 0) std::this_thread::yield();
        } else {
            armed_.wait(last, std::memory_order_acquire);
        }
    }
}

void Team::arrive(std::atomic<unsigned>& count) const {
    if (count.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_.size()) count.notify_one();
}

// Returns when the round starts; false if the team ends instead.
bool Team::start_of(unsigned round) {
    const auto is = [this, round](bool looks) {
        return [this, round, looks](unsigned signal) {
            return signal == go(round) || (looks && signal == look(round)) || ending_.load();
        };
    };
    arrive(ready_);
    await(signal_, is(true));
    if (ending_) return false;
    if (signal_.load(std::memory_order_acquire) == look(round)) arrive(awake_);
    await(signal_, is(false));
    return !ending_;
}

void Team::work(std::size_t index, const std::vector<int>& cpus) {
    run_on(cpus);
    for (unsigned round = 1;; ++round) {
        await_round(round - 1);
        if (ending_ || !start_of(round)) return;
        try {
            (*job_)(index);
        } catch (...) {
            const std::scoped_lock lock(failure_guard_);
            if (!failure_) failure_ = std::current_exception();
        }
        if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_all();
    }
}

}  // namespace waywiser::host
