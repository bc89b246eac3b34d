// What a rank is doing in messages, for a thread that asks while the rank may be blocked there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace waywiser::ranks {

// Written by the one thread that exchanges messages, read by any thread.
class Stage {
public:
    // What is done until the end of the scope. `call` is a literal; `peer` is -1 for all ranks.
    class Entered {
    public:
        Entered(Stage& stage, const char* call, int peer = -1) : stage_(stage) {
            stage.peer_.store(peer, std::memory_order_relaxed);
            stage.calls_.store(stage.calls_.load(std::memory_order_relaxed) + 1,
                               std::memory_order_relaxed);
            stage.call_.store(call, std::memory_order_release);
        }
        ~Entered() { stage_.call_.store(nullptr, std::memory_order_release); }
        Entered(const Entered&) = delete;
        Entered& operator=(const Entered&) = delete;

    private:
        Stage& stage_;
    };

    // The calls so far, the current one included.
    [[nodiscard]] std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
    // "receive from rank 1, call 935"; "" outside of calls.
    [[nodiscard]] std::string text() const {
        const char* call = call_.load(std::memory_order_acquire);
        if (call == nullptr) return "";
        std::string words = call;
        if (const int peer = peer_.load(std::memory_order_relaxed); peer >= 0) {
            words += " rank " + std::to_string(peer);
        }
        return words + ", call " + std::to_string(calls());
    }

private:
    std::atomic<const char*> call_{nullptr};
    std::atomic<int> peer_{-1};
    std::atomic<std::uint64_t> calls_{0};
};

}  // namespace waywiser::ranks
