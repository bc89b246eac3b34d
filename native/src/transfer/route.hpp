// The links that a transfer takes, and what it submits to them.
#pragma once

#include <cstddef>
#include <utility>

#include "gpu/gpu.hpp"

namespace waywiser::transfer {

// The copy engine of a GPU that a copy occupies: from the host, to the host, or to and from peers.
enum class Direction { in, out, peer };
using Lane = std::pair<int, Direction>;  // by GPU

// One way for the bytes of a job. Each has a RouteQueue, and a Ring or several.
struct Route {
    int device = -1;  // whose stream carries the bytes; -1: only CPUs move them
    Direction direction = Direction::in;
    int second_device = -1;  // continues on another stream after the first
    Direction second_direction = Direction::in;
    bool through_host = false;  // through slots in host memory, pinned if there is a GPU
    bool through_gpu = false;   // through slots on `device`

    [[nodiscard]] Lane lane() const { return {device, direction}; }
    [[nodiscard]] Lane second_lane() const { return {second_device, second_direction}; }
    // The device whose stream has the last operation.
    [[nodiscard]] int last_device() const { return second_device >= 0 ? second_device : device; }
};

// Consecutive bytes of a transfer.
struct Part {
    std::size_t at = 0;
    std::size_t bytes = 0;
    [[nodiscard]] std::size_t end() const { return at + bytes; }
};

// What a job enqueues at once.
struct Submission {
    Part part;
    std::byte* slot = nullptr;    // of the first byte in host memory, if the route has such slots
    std::byte* bounce = nullptr;  // the same on the route's device
    const Route* route = nullptr;
    const gpu::Stream* stream = nullptr;  // of the route's device
    const gpu::Stream* second = nullptr;  // of its second device
    gpu::Event* handover = nullptr;       // between the two
    [[nodiscard]] const gpu::Stream& last() const { return second != nullptr ? *second : *stream; }
};

}  // namespace waywiser::transfer
