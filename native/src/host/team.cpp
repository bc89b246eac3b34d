#include "team.hpp"

#include <utility>

#include "affinity.hpp"
#include "clock.hpp"
#include "relax.hpp"

namespace waywiser::host {
namespace {

// Spins this often before it lets others run: with fewer cores than threads somebody has to yield.
constexpr int kSpinsPerYield = 4096;
// A thread that has worked looks out for more this long before it sleeps: waking it takes tens of
// microseconds, which would be seen in a short copy by several threads.
constexpr double kLingerSeconds = 0.002;
constexpr int kSpinsPerClock = 64;

template <class Condition>
void spin_until(const Condition& condition) {
    for (int spins = 1; !condition(); ++spins) {
        if (spins % kSpinsPerYield == 0) {
            std::this_thread::yield();
        } else {
            relax();
        }
    }
}

}  // namespace

Team::Team(std::vector<std::vector<int>> cpus) {
    threads_.reserve(cpus.size());
    try {
        for (std::size_t i = 0; i < cpus.size(); ++i) {
            threads_.emplace_back([this, i, own = std::move(cpus[i])] { work(i, own); });
        }
    } catch (...) {  // the system gives no more threads: those that wait would be joined for ever
        end();
        throw;
    }
}

Team::~Team() { end(); }

void Team::end() {
    ending_ = true;
    ++armed_;
    armed_.notify_all();
}

void Team::prepare(const std::function<void(std::size_t)>& job) {
    job_ = &job;
    failure_ = nullptr;
    ready_ = 0;
    busy_ = static_cast<unsigned>(threads_.size());
}

void Team::arm(const std::function<void(std::size_t)>& job) {
    prepare(job);
    ++armed_;
    armed_.notify_all();
    const auto everybody = static_cast<unsigned>(threads_.size());
    spin_until([&] { return ready_.load(std::memory_order_acquire) == everybody; });
}

void Team::release() { released_.store(armed_.load(), std::memory_order_release); }

void Team::wait() {
    for (unsigned left = busy_.load(); left != 0; left = busy_.load()) busy_.wait(left);
    rethrow();
}

void Team::start(const std::function<void(std::size_t)>& job) {
    prepare(job);
    released_.store(armed_.load() + 1, std::memory_order_release);
    ++armed_;
    armed_.notify_all();
}

void Team::join() {
    spin_until([&] { return busy_.load(std::memory_order_acquire) == 0; });
    rethrow();
}

void Team::rethrow() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
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

void Team::work(std::size_t index, const std::vector<int>& cpus) {
    run_on(cpus);
    for (unsigned round = 1;; ++round) {
        await_round(round - 1);
        ready_.fetch_add(1, std::memory_order_release);
        spin_until([&] {
            return released_.load(std::memory_order_acquire) == round ||
                   ending_.load(std::memory_order_acquire);
        });
        if (ending_) return;
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
