// Chunks that are submitted by one call.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/chunk.hpp"

namespace waywiser::transfer {

// Written by the thread that submits it, before the chunks refer to it; then only `ended` changes.
struct Batch {
    std::shared_ptr<gpu::Event> event;     // after the last of the chunks
    std::shared_ptr<gpu::Event> handover;  // between two devices
    std::size_t bytes = 0;
    bool failed = false;              // they were not submitted, or not completed
    std::atomic<bool> ended = false;  // none of them is in flight any more
};

// The chunks of one route of a job that are gathered and submitted together. `submitting` comes
// before `mutex`.
struct RouteBatches {
    std::mutex submitting;                         // held by the one thread that submits
    std::deque<std::shared_ptr<Batch>> in_flight;  // guarded by `submitting`

    std::mutex mutex;
    std::vector<Chunk*> ready;  // not submitted; guarded by `mutex`, as is Chunk::batch
};

}  // namespace waywiser::transfer
