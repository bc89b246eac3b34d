// What every copy of the fake has in common, whatever shape its bytes have: how long it lasts, when
// it blocks its host, what faults do to it.
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
    std::function<void()> move;  // the bytes, from side to side
    std::byte* last = nullptr;   // of the bytes that arrive
    double pieces_seconds = 0;   // beyond latency and bytes
    bool contiguous = true;
};

// What the stream, or a call that is its own stream, does.
void execute(const Copy& copy, const Effects& effects);
// Blocks where the real runtime does.
void enqueue(const Copy& copy, const Effects& effects, const gpu::Stream& stream);
// Small pageable sources are taken along at the call: who gave them may change them after it.
bool taken_along(const Copy& copy);

}  // namespace waywiser::fake
