// Common code of the fake's copies of any shape: their duration, when they block the host, and the
// effects of faults.
#pragma once

#include <cstddef>
#include <functional>

#include "context.hpp"
#include "gpu/gpu.hpp"
#include "ranges.hpp"

namespace waywiser::fake {

struct Copy {
    std::size_t bytes = 0;
    Side to;
    Side from;
    std::function<void()> move;  // copies the bytes
    std::byte* last = nullptr;   // of the bytes that arrive
    double pieces_seconds = 0;   // in addition to latency and bandwidth
    bool contiguous = true;
};

// Runs in the stream, or in a call that is its own stream.
void execute(const Copy& copy, const Effects& effects);
// Blocks when the real runtime does.
void enqueue(const Copy& copy, const Effects& effects, const gpu::Stream& stream);
// Small pageable sources are read during the call: the caller may change them after it.
bool taken_along(const Copy& copy);

}  // namespace waywiser::fake
