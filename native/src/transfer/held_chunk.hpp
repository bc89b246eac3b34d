// What a working thread holds.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/chunk.hpp"
#include "transfer/job.hpp"

namespace waywiser::transfer {

// A chunk with its resources. One thread at a time holds it.
struct HeldChunk {
    std::shared_ptr<Job> job;
    Chunk chunk;
    std::shared_ptr<gpu::Event> event;     // after the last operation
    std::shared_ptr<gpu::Event> handover;  // between two devices
    bool submitted = false;
    bool queued =
        false;  // counts among the queued bytes of its copy engine; guarded by PoliteQueues

    [[nodiscard]] const Route& route() const { return job->routes()[chunk.route]; }
};

// A working thread: its chunks, in the order in which they were submitted. Only the thread itself
// uses this, also in calls of the Schedule.
struct WorkerState {
    std::vector<std::unique_ptr<HeldChunk>> chunks;
    std::unique_ptr<HeldChunk> filled;  // its copy engine does not accept it yet
    // Jobs that it works on until no chunks are left to take: threads that switch between jobs
    // would wake each other constantly and lose their cached slots.
    std::vector<std::weak_ptr<Job>> jobs;
    bool caller = false;                               // the thread of a program that waits
    int node = -1;                                     // to which it is bound
    std::chrono::steady_clock::time_point last_chunk;  // when it took one

    [[nodiscard]] bool holds_chunks() const { return !chunks.empty() || filled; }
    [[nodiscard]] bool works_on(const Job& job) const {
        return std::ranges::any_of(jobs, [&](const auto& one) { return one.lock().get() == &job; });
    }
};

}  // namespace waywiser::transfer
