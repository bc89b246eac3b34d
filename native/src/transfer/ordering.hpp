// How a transfer is ordered among what else is in a caller's stream.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "gpu/gpu.hpp"
#include "transfer/copy.hpp"
#include "transfer/engine.hpp"

namespace waywiser::transfer {

// The caller's stream, with the device that it belongs to.
struct Ordering {
    std::optional<gpu::Stream> stream;  // nothing where there is nothing to be ordered with
    bool capturing = false;
};
// `operand`: the GPU of the memory, -1 for none. Throws Refused for a stream of another context,
// and InvalidCopy for GPU memory without a stream.
Ordering ordering(const Engine& engine, const CallerStream& stream, int operand);

// An event behind what is in the stream; nothing if the stream is empty.
std::optional<gpu::Event> after(const Ordering& order, const CallerStream& stream);

[[noreturn]] void refuse_capture();

// By calls of the runtime on the caller's stream, cut where registrations end.
void plain_copy(const Side& to, const Side& from, std::size_t bytes, const Ordering& order);

// Runs a job with the calling thread; then the caller's stream goes on after it.
void run_ordered(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
                 const CallerStream& stream);

}  // namespace waywiser::transfer
