// The threads of an engine.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "waywiser/words.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the threads and is held while they are created; nothing else is
// locked then. Call join() before the destructor, or detach(), after which it must never be
// destroyed.
class CopyThreads {
public:
    // At most `most` threads, spread over the NUMA nodes that have CPUs. Without such nodes they
    // run on `cpus`, if there are any. Each calls `work` with the node to whose CPUs it is bound,
    // or -1.
    CopyThreads(const Machine& machine, std::vector<int> cpus, std::size_t most,
                std::function<void(int node)> work);
    CopyThreads(const CopyThreads&) = delete;
    CopyThreads& operator=(const CopyThreads&) = delete;

    // Creates threads until there are `count`, or as many as the system starts, which may be none.
    // Does nothing after join().
    void spawn(std::size_t count);
    // Why the system has not started more.
    [[nodiscard]] std::string why_not();
    // Waits until all have returned from `work`. Asks `goes_on` every kJoinStep, and returns false
    // if it says no: the threads run on then.
    bool join(const std::function<bool()>& goes_on);
    static constexpr std::chrono::milliseconds kJoinStep{10};
    // Gives up the threads that are left.
    void detach();
    // The number of nodes over which they are spread.
    [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }
    // Takes no lock; 0 after join() has begun.
    [[nodiscard]] std::size_t size() const { return size_; }

private:
    void run(std::size_t index);

    std::vector<NumaNode> nodes_;  // constant
    const std::vector<int> cpus_;
    const std::size_t most_;
    const std::function<void(int)> work_;
    std::atomic<std::size_t> size_{0};
    std::mutex mutex_;
    std::condition_variable ended_;
    std::vector<std::thread> threads_;
    std::size_t returned_ = 0;  // threads that have returned from `work`
    std::string why_not_;
    bool joined_ = false;
};

}  // namespace waywiser::transfer
