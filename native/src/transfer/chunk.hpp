// A chunk of a transfer, and the route that it takes.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "gpu/gpu.hpp"
#include "transfer/staging.hpp"

namespace waywiser::transfer {

struct Batch;

// The copy engine of a GPU that a chunk occupies: from the host, to the host, or to and from peers.
enum class Direction { in, out, peer };
using Lane = std::pair<int, Direction>;  // by GPU

// A route for chunks of a job.
struct Route {
    int device = -1;  // whose stream carries the chunk; -1: only CPUs move it
    Direction direction = Direction::in;
    int second_device = -1;  // continues on another stream after the first
    Direction second_direction = Direction::in;
    std::size_t slot_bytes = 0;    // pinned staging for a chunk; 0: none
    std::size_t bounce_bytes = 0;  // staging on `device` for a chunk; 0: none
    std::size_t most_chunks = std::numeric_limits<std::size_t>::max();  // in flight at once

    [[nodiscard]] Lane lane() const { return {device, direction}; }
    // The device whose stream has the last operation of a chunk.
    [[nodiscard]] int last_device() const { return second_device >= 0 ? second_device : device; }
};

// A chunk in flight. The thread that holds it is the only one that uses it, except in submit() of a
// chunk that is submitted with others.
struct Chunk {
    std::size_t at = 0;       // offset in the transfer
    std::size_t bytes = 0;    // fill() reduces it at the end of a file
    std::size_t claimed = 0;  // `bytes` before fill()
    std::size_t route = 0;
    Slot slot;
    Slot bounce;
    gpu::Stream* stream = nullptr;   // of the route's device
    gpu::Stream* second = nullptr;   // of its second device
    gpu::Event* handover = nullptr;  // between the two, for submit()
    std::size_t skew = 0;            // offset of the chunk in its slot
    std::shared_ptr<Batch> batch;    // if submitted with others; guarded by its RouteBatches
    bool ends_job = false;    // after fill() all bytes have arrived, those of other chunks too
    bool unfinished = false;  // fill() waits for a GPU: it is to be called again
};

}  // namespace waywiser::transfer
