// Orders a transfer with the other work in a caller's stream.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "gpu/gpu.hpp"
#include "transfer/caller_stream.hpp"
#include "transfer/engine.hpp"
#include "transfer/side.hpp"

namespace waywiser::transfer {

// The caller's stream and the device it belongs to.
struct Ordering {
    std::optional<gpu::Stream> stream;  // nullopt: not ordered with any work
    bool capturing = false;
};
// `operand`: the GPU of the memory, or -1. Throws NotSupported for a stream of another context, and
// InvalidCopy for GPU memory without a stream.
Ordering ordering(const Engine& engine, const CallerStream& stream, int operand);

// An event after the work in the stream; nullopt if the stream is empty.
std::optional<gpu::Event> after(const Ordering& order, const CallerStream& stream);

// The same for a caller who waits for the copy. Looks at the event for a moment, and returns
// nullopt if it happens meanwhile: threads that wait for a job's start begin later than those of a
// job that can start at once. On an idle stream the event happens after some 5 us.
std::optional<gpu::Event> after_a_look(const Ordering& order, const CallerStream& stream);

// After a failure: waits until the stream does not use the caller's memory any more. Returns at
// once if the stream cannot be queried.
void drain(const Ordering& order) noexcept;
void drain(const Engine& engine, const CallerStream& stream) noexcept;

[[noreturn]] void reject_capture();

// Copies by runtime calls on the caller's stream, split at the ends of registrations.
void plain_copy(const Side& to, const Side& from, std::size_t bytes, const Ordering& order);

// Runs a job that starts after an event (nullopt: at once) with the calling thread, and orders the
// caller's stream after it.
void run_after(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
               std::optional<gpu::Event> event);
// The same with after_a_look().
void run_ordered(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
                 const CallerStream& stream);

}  // namespace waywiser::transfer
