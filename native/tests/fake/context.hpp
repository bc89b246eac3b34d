// The state of the fake's one process-wide context: what it was told, what was counted, whether it
// is lost, and the one place where threads wait for somebody outside to act (gates, hangs).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "fake.hpp"
#include "options.hpp"

namespace waywiser::fake {

// What passing a point brings, besides what was thrown at once.
struct Effects {
    bool lost = false;  // the context, when the stream gets there
    bool hang = false;
    bool flip = false;
    bool drop = false;
    bool block = false;
    double delay_seconds = 0;
};

class Context {
public:
    // Never destroyed: streams that drain after main() still use it.
    static Context& instance();

    void configure(Options options);
    [[nodiscard]] std::shared_ptr<const Options> options() const;
    [[nodiscard]] Counts counts() const;

    // Throws where the context is lost or no device is to be had.
    void check(const char* call) const;
    void check_device(const char* call, int device) const;
    // Counts a call, or a query, and strikes as told.
    void count(Point point, const char* call);
    // check_device() and count() of a call that is made in the device's context, which it then has.
    void enter(const char* call, int device);
    [[nodiscard]] std::set<int> entered() const;
    // The device whose context the calling thread has; -1 before its first call in one.
    static int& current();
    // check(), then counts, and strikes as told: throws, crashes, or says what is to happen.
    Effects pass(Point point, const char* call, std::size_t bytes = 0);

    [[nodiscard]] bool lost() const { return lost_; }
    void lose();

    void enable_peer(int from, int to);
    // Whether the bytes can go directly between the two, whoever asks.
    [[nodiscard]] bool peer_enabled(int one, int other) const;

    // Waits until `ready`, which is asked again after every change(); a lost context is no reason
    // to wait any longer.
    template <class Ready>
    void hold(Ready ready) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return lost_ || ready(); });
    }
    template <class Act>
    void change(Act act) {
        {
            const std::lock_guard lock(mutex_);
            act();
        }
        changed_.notify_all();
    }
    // Until configure().
    void hang();
    // Whether this opening of a closed gate is one of those to be ignored; only within change().
    bool ignores_opening();
    // How often configure() was called; only within hold() and change().
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

private:
    Context();
    void strike_at_once(std::unique_lock<std::mutex>& lock, Point point, std::size_t count,
                        const char* call);
    bool strikes(const std::optional<Strike>& strike, Point point, std::size_t count);
    bool claims_once();

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::shared_ptr<const Options> options_;
    std::array<std::size_t, kPoints> passed_{};
    std::set<std::pair<int, int>> peers_;
    std::set<int> entered_;
    std::uint64_t generation_ = 0;
    bool opening_ignored_ = false;
    std::atomic<bool> lost_{false};
    bool once_claimed_ = false;
};

// What exists, counted by those who make and destroy it.
struct Living {
    std::atomic<std::size_t> streams{0}, events{0}, device_buffers{0}, host_buffers{0},
        registrations{0}, gates{0}, pool_buffers{0}, mapped_buffers{0}, foreign_buffers{0},
        managed_buffers{0}, async_allocations{0}, graphs{0}, executable_graphs{0};
};
Living& living();

}  // namespace waywiser::fake
