// The state of the fake's one process-wide context: its configuration, counters, whether it is
// lost, and the waiting of threads for external events (gates, hangs).
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "fake.hpp"
#include "options.hpp"
#include "simulated_time.hpp"

namespace waywiser::fake {

// The faults at a point, besides an exception.
struct Effects {
    bool lost = false;  // lose the context when the stream gets there
    bool hang = false;
    std::uint64_t generation = 0;  // of the configuration that caused them
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

    // Throws if the context is lost or no device is available, as in a child of a process that has
    // used one.
    void check(const char* call) const;
    // Whether this process was forked from one that has used a device since configure().
    [[nodiscard]] bool forked() const;
    // Notes that this process has used a device, if none has.
    void note_use() const;
    void check_device(const char* call, int device) const;
    // Counts a call, or a query, and applies the configured faults.
    void count(Point point, const char* call);
    // check_device() and count() of a call in the device's context, which becomes current.
    void enter(const char* call, int device);
    [[nodiscard]] std::set<int> entered() const;
    // The device of the calling thread's context; -1 before its first call in one.
    static int& current();
    // check(), then counts, and applies the configured faults: throws, crashes, or returns effects.
    Effects pass(Point point, const char* call, std::size_t bytes = 0);

    [[nodiscard]] bool lost() const { return lost_; }
    void lose();

    void enable_peer(int from, int to);
    // Whether bytes can move directly between the two devices, in any context.
    [[nodiscard]] bool peer_enabled(int one, int other) const;

    // Waits until `ready` is true, which is tested again after every change(); returns if the
    // context is lost.
    template <class Ready>
    void hold(Ready ready) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return lost_ || ready(); });
    }
    // The same, until a moment at the latest.
    template <class Ready>
    void hold_until(Instant end, Ready ready) {
        std::unique_lock lock(mutex_);
        changed_.wait_until(lock, end, [&] { return lost_ || ready(); });
    }
    template <class Act>
    void change(Act act) {
        {
            const std::lock_guard lock(mutex_);
            act();
        }
        changed_.notify_all();
    }
    // Waits, if the effects include a hang, until the configuration that caused it is replaced. The
    // stream may get there later than that, and does not wait then.
    void hang(const Effects& effects);
    // Kernels that occupy all multiprocessors of a device: one more or less; only within change().
    void occupy(int device, int kernels) { occupied_[device] += kernels; }
    // Waits until no such kernel runs on any of the devices.
    void wait_for_multiprocessors(const std::set<int>& devices);
    // Whether this opening of a closed gate is to be ignored; only within change().
    bool ignores_opening();
    // Number of calls of configure(); only within hold() and change().
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
    std::map<int, int> occupied_;
    std::uint64_t generation_ = 0;
    bool opening_ignored_ = false;
    std::atomic<bool> lost_{false};
    mutable std::atomic<pid_t> user_{0};  // the process that has used a device; 0: none
    bool once_claimed_ = false;
};

// Counts existing objects.
struct Living {
    std::atomic<std::size_t> streams{0}, events{0}, device_buffers{0}, host_buffers{0},
        registrations{0}, gates{0}, pool_buffers{0}, mapped_buffers{0}, foreign_buffers{0},
        managed_buffers{0}, async_allocations{0}, graphs{0}, executable_graphs{0};
};
Living& living();

}  // namespace waywiser::fake
