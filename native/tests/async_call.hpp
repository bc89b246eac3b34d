// Tests whether a call returns: a call that must return has seconds, one that must not is watched
// only for moments, so that a busy machine fails no test.
#pragma once

#include <chrono>
#include <future>
#include <utility>

namespace waywiser::test {

inline constexpr std::chrono::seconds kLong{180};
inline constexpr std::chrono::milliseconds kMoment{60};
inline constexpr double kHangSeconds = 60;  // of a wait with a limit: longer means that it hangs

// A call in its own thread.
class AsyncCall {
public:
    template <class Work>
    explicit AsyncCall(Work work) : done_(std::async(std::launch::async, std::move(work))) {}

    [[nodiscard]] bool returns() const {
        return done_.wait_for(kLong) == std::future_status::ready;
    }
    [[nodiscard]] bool blocks() const {
        return done_.wait_for(kMoment) != std::future_status::ready;
    }
    // Throws what the call threw.
    void get() { done_.get(); }

private:
    std::future<void> done_;
};

}  // namespace waywiser::test
