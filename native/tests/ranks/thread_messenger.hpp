// Ranks that are threads of a test, with the faults of messages: delay, failure, wrong bytes, hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ranks/messenger.hpp"

namespace waywiser::test {

// The n-th message, from 1, that a rank starts to send. Those of collectives count too.
struct MessageOfRank {
    int rank = 0;
    std::uint64_t message = 1;
};

struct ThreadWorldOptions {
    // A send of more bytes waits for its receive, as MPI does from some size on.
    std::size_t most_buffered_bytes = 4096;
    std::chrono::microseconds delay{0};  // before each message
    std::optional<MessageOfRank> fails, flips, hangs;
    std::size_t counted_bytes = 1;  // smaller messages do not count
};

// A world of ranks, in which each rank is a thread.
class ThreadWorld {
public:
    explicit ThreadWorld(int size, ThreadWorldOptions options = {})
        : size_(size), options_(options), stages_(size), sent_(size) {}

    // Runs the work in each rank and returns when all have ended. If it throws in one, the calls
    // of the others fail; throws what the first threw.
    void run(const std::function<void(ranks::Messenger&)>& work);
    // Lets all calls fail, those that hang too.
    void end();
    // Of the rank of that number; any thread may read it.
    [[nodiscard]] const ranks::Stage& stage(int rank) const { return stages_[rank]; }
    [[nodiscard]] int size() const { return size_; }

private:
    friend class ThreadStarted;
    friend class ThreadMessenger;

    // Group, sender and receiver in the world, tag.
    using Key = std::tuple<int, int, int, int>;
    struct Message {
        const std::byte* data = nullptr;
        std::size_t bytes = 0;
        std::vector<std::byte> copy;  // of what is buffered
        bool flipped = false;
        bool ended = false;
    };
    struct Receive {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
        std::string error;
        bool ended = false;
    };
    struct Queue {
        std::deque<std::shared_ptr<Message>> messages;
        std::deque<std::shared_ptr<Receive>> receives;
    };

    std::shared_ptr<Message> start_send(const Key& key, const void* data, std::size_t bytes);
    std::shared_ptr<Receive> start_receive(const Key& key, void* data, std::size_t bytes);
    void wait(const std::function<bool()>& ended);
    bool look(const std::function<bool()>& ended);
    int group(int parent, const std::vector<int>& world_ranks, int rank);
    void match(Queue& queue);
    void require_running() const;

    const int size_;
    const ThreadWorldOptions options_;
    std::vector<ranks::Stage> stages_;
    std::vector<std::uint64_t> sent_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::string why_over_ = "the world of ranks has ended";
    std::map<Key, Queue> queues_;
    std::map<std::tuple<int, std::vector<int>, int>, int> groups_;         // parent, ranks, n-th
    std::map<std::tuple<int, std::vector<int>, int>, int> made_by_ranks_;  // parent, ranks, rank
};

}  // namespace waywiser::test
