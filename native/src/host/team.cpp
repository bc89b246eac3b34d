#include "team.hpp"

#include <utility>

#include "affinity.hpp"
#include "relax.hpp"

namespace waywiser::host {
namespace {

// Spins this often before it lets others run: with fewer cores than threads somebody has to yield.
constexpr int kSpinsPerYield = 4096;

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
    for (std::size_t i = 0; i < cpus.size(); ++i) {
        threads_.emplace_back([this, i, own = std::move(cpus[i])] { work(i, own); });
    }
}

Team::~Team() {
    ending_ = true;
    ++armed_;
    armed_.notify_all();
}

void Team::arm(const std::function<void(std::size_t)>& job) {
    job_ = &job;
    failure_ = nullptr;
    const auto everybody = static_cast<unsigned>(threads_.size());
    ready_ = 0;
    busy_ = everybody;
    ++armed_;
    armed_.notify_all();
    spin_until([&] { return ready_.load(std::memory_order_acquire) == everybody; });
}

void Team::release() { released_.fetch_add(1, std::memory_order_release); }

void Team::wait() {
    for (unsigned left = busy_.load(); left != 0; left = busy_.load()) busy_.wait(left);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Team::work(std::size_t index, const std::vector<int>& cpus) {
    run_on(cpus);
    for (unsigned seen = 0;; ++seen) {
        armed_.wait(seen);
        if (ending_) return;
        const unsigned flag = released_.load(std::memory_order_acquire);
        ready_.fetch_add(1, std::memory_order_release);
        spin_until([&] { return released_.load(std::memory_order_acquire) != flag; });
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
