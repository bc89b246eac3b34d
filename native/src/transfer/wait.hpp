// How threads wait for a GPU: with a deadline, spinning first and then sleeping.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "gpu/gpu.hpp"
#include "host/relax.hpp"

namespace waywiser::transfer {

// The moment at which a call stops waiting. It is made once, and handed to everything that waits.
class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    // Without limit.
    Deadline() = default;
    // `seconds` from now; without limit if negative or longer than a clock can count.
    explicit Deadline(double seconds) {
        constexpr double kMostSeconds = 1e9;
        if (seconds < 0 || seconds > kMostSeconds) return;
        end_ = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    [[nodiscard]] bool is_limited() const { return end_.has_value(); }
    [[nodiscard]] bool is_over() const { return end_ && Clock::now() >= *end_; }
    // Only if it is limited.
    [[nodiscard]] Clock::time_point end() const { return *end_; }
    // Seconds that are left, at least 0; negative: without limit.
    [[nodiscard]] double left() const {
        if (!end_) return -1;
        return std::max(std::chrono::duration<double>(*end_ - Clock::now()).count(), 0.0);
    }

private:
    std::optional<Clock::time_point> end_;
};

// How a thread asks again and again: it spins for a while, then it sleeps between two queries.
struct Polling {
    std::chrono::nanoseconds spin;   // from `since` on
    std::chrono::nanoseconds pause;  // between two queries while it spins
    std::chrono::nanoseconds sleep;  // between two queries afterwards
};

// Waits until the condition holds; false if it does not before the deadline. Throws what the
// condition throws. A thread that spins yields its CPU now and then: the scheduler lets a thread
// that yields all the time wait for others.
template <class Condition>
bool poll(const Condition& condition, const Deadline& deadline, const Polling& polling,
          Deadline::Clock::time_point since = Deadline::Clock::now()) {
    constexpr unsigned kQueriesBetweenYields = 64;
    for (unsigned queries = 1; !condition(); ++queries) {
        const auto now = Deadline::Clock::now();
        if (deadline.is_limited() && now >= deadline.end()) return false;
        if (now - since >= polling.spin) {
            std::this_thread::sleep_for(polling.sleep);
            continue;
        }
        if (queries % kQueriesBetweenYields == 0) std::this_thread::yield();
        do {
            host::relax();
        } while (Deadline::Clock::now() - now < polling.pause);
    }
    return true;
}

// A flag that this thread has set, until it leaves: true if no other thread had set it.
class Turn {
public:
    explicit Turn(std::atomic<bool>& flag)
        : flag_(flag), is_own_(!flag.load(std::memory_order_relaxed) && !flag.exchange(true)) {}
    ~Turn() {
        if (is_own_) flag_.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return is_own_; }

private:
    std::atomic<bool>& flag_;
    const bool is_own_;
};

// A GPU that completes nothing for so long is taken for one that does not answer.
inline constexpr double kUnresponsiveSeconds = 5;

// Asks of one event whether it has happened, and of nothing else. A query that fails says nothing
// of the work before the event, and the next one may not fail. Thread safe; has no lock.
class EventQuery {
public:
    // Once it has happened, the driver is not asked again. Throws what is sticky, and what fails
    // too often in a row.
    bool has_happened(const gpu::Event& event);
    // A thread has waited for the event.
    void note_happened() { happened_.store(true, std::memory_order_release); }

private:
    std::atomic<bool> happened_{false};
    std::atomic<int> failed_{0};  // queries in a row
};

// How a wait after a failure has ended.
enum class Settled {
    yes,   // the work is done
    lost,  // so is the context of the GPU, which runs nothing any more
    no,    // the GPU does not answer: it may use the memory of the work at any time
};
// Waits until the work that is in the stream now, or before the event, is done:
// kUnresponsiveSeconds at most. Others may go on to fill the stream. It must not be captured.
Settled settle(const gpu::Stream& stream) noexcept;
Settled settle(const gpu::Event& event) noexcept;

}  // namespace waywiser::transfer
