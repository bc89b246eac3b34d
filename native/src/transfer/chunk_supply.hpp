// Divides a job into chunks on demand, and counts those that threads hold.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/chunk.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

class Job;

// Belongs to its job, which must outlive it. Not thread safe: the engine's Schedule calls it with
// its lock held, after open().
class ChunkSupply {
public:
    explicit ChunkSupply(const Job& job) : job_(job) {}

    // Called once, before the job is shared between threads. No chunk may be taken before `start`
    // has happened (nullptr: at once).
    void open(std::shared_ptr<const gpu::Event> start);
    [[nodiscard]] bool waits() const { return start_ != nullptr; }
    // Whether `start` has happened. Throws gpu::Error if that cannot be found out.
    [[nodiscard]] bool started() { return start_query_.has_happened(*start_); }

    // No chunk is left to take now.
    [[nodiscard]] bool exhausted() const;
    // Maximum number of chunks that are left to take.
    [[nodiscard]] std::size_t most_left() const;
    // A route that accepts a chunk now.
    [[nodiscard]] std::optional<std::size_t> free_route() const;
    // Takes the next chunk, for a free route. `threads`: those of the engine.
    Chunk take(std::size_t route, std::size_t threads);
    // Another thread is to take the chunk.
    void put_back(const Chunk& chunk);
    // So many chunks that were taken are submitted, or have ended without. True if this was the
    // last of the job.
    bool submitted(std::size_t chunks);
    void completed(const Chunk& chunk);
    [[nodiscard]] bool all_completed() const { return exhausted() && incomplete_ == 0; }
    // True once: for the thread that is to complete the job.
    [[nodiscard]] bool begin_completion() { return !std::exchange(completing_, true); }

    // Threads that work on the job.
    [[nodiscard]] std::size_t threads() const { return threads_; }
    void join() { ++threads_; }
    void leave() { --threads_; }

private:
    [[nodiscard]] std::size_t next_bytes(std::size_t threads) const;

    const Job& job_;
    std::shared_ptr<const gpu::Event> start_;
    EventQuery start_query_;
    std::size_t next_ = 0;                                       // first byte of no chunk yet
    std::vector<std::pair<std::size_t, std::size_t>> put_back_;  // offset and bytes
    std::size_t incomplete_ = 0;                                 // chunks taken and not complete
    std::size_t not_submitted_ = 0;                              // of these, not submitted
    std::vector<std::size_t> on_route_;                          // of these, by route
    std::size_t turn_ = 0;                                       // route that is tried first
    std::size_t threads_ = 0;
    bool completing_ = false;
};

}  // namespace waywiser::transfer
