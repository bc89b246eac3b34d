// A stream: a thread that runs the enqueued work in order, and outlives its handle until done. What
// is enqueued in a blocking stream starts after what is in the legacy stream of its device, and
// what is enqueued in the legacy stream after what is in all blocking streams.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace waywiser::fake {

// Number of entries before enqueueing blocks, as observed on H200 with driver 580.
inline constexpr std::size_t kQueueEntries = 1020;

class StreamThread : public std::enable_shared_from_this<StreamThread> {
public:
    enum class Kind { non_blocking, blocking, legacy };
    static std::shared_ptr<StreamThread> start(int device, Kind kind);

    // Returns the number of the entry, for wait(). Blocks while the queue is full; records while
    // capturing.
    std::uint64_t enqueue(std::function<void()> work);
    // For the work of an entry: the entry has finished when others see what the last step does, and
    // not before.
    void finish_entry(const std::function<void()>& last);
    void wait(std::uint64_t entry);
    void wait_all();
    [[nodiscard]] bool done() const;
    // Queued work still runs; then the thread ends.
    void close();
    // Starts to record instead of running; false if it already does.
    bool begin_capture();
    std::vector<std::function<void()>> end_capture();
    [[nodiscard]] bool capturing() const;
    [[nodiscard]] int device() const { return device_; }
    [[nodiscard]] Kind kind() const { return kind_; }

private:
    StreamThread(int device, Kind kind) : device_(device), kind_(kind) {}
    void run();
    // Entries of other streams.
    using Entries = std::vector<std::pair<std::shared_ptr<StreamThread>, std::uint64_t>>;
    // What is in other streams now and comes before the next entry here.
    [[nodiscard]] Entries earlier() const;

    const int device_;
    const Kind kind_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> queue_;
    std::uint64_t enqueued_ = 0;
    std::uint64_t finished_ = 0;
    bool entry_has_finished_ = false;
    bool closing_ = false;
    bool capturing_ = false;
    std::vector<std::function<void()>> captured_;
};

// Waits for all work that is now enqueued on the device's streams, including those without a
// handle; device -1 is every device.
void wait_device(int device);

// How many streams work.
std::size_t busy_streams();

}  // namespace waywiser::fake
