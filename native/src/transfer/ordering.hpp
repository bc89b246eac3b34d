// Orders a transfer with the other work in a caller's stream.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "gpu/gpu.hpp"
#include "transfer/caller_stream.hpp"
#include "transfer/copy_streams.hpp"
#include "transfer/engine.hpp"
#include "transfer/side.hpp"

namespace waywiser::transfer {

// The caller's stream and the device it belongs to.
struct Ordering {
    std::optional<gpu::Stream> stream;  // nullopt: not ordered with any work
    bool capturing = false;
    const EventPool* events = nullptr;  // of its engine, which must outlive it
};
// `operand`: the GPU of the memory, or -1. Throws NotSupported for a stream of another context, and
// InvalidCopy for GPU memory without a stream.
Ordering ordering(const Engine& engine, const CallerStream& stream, int operand);

// The stream with the GPU that it belongs to, if it is a default stream: that of the current GPU,
// or `operand` (-1: none) if none is current. To be called before others: calls of the runtime make
// other GPUs current, whose default streams are other streams.
CallerStream with_its_gpu(const CallerStream& stream, int operand);

// An event after all work that CUDA orders before the next work in the stream; nullptr if there is
// none. Only a non-blocking stream can be asked for that: others also follow the legacy default
// stream, whose work they do not show.
std::shared_ptr<gpu::Event> after(const Ordering& order);

// The same for a caller who waits for the copy. Queries the event for a moment, and returns nullptr
// if it happens meanwhile: threads that wait for a job's start begin later than those of a job that
// can start at once. On an idle stream the event happens after some 5 us.
std::shared_ptr<gpu::Event> event_unless_idle(const Ordering& order);

// To be called while an exception is handled: waits until the stream does not use the caller's
// memory any more, and throws the exception again; MemoryInUse if the GPU does not answer.
[[noreturn]] void rethrow_when_settled(const gpu::Stream& stream);
// The same, and keeps the leased stream if the GPU does not answer.
[[noreturn]] void rethrow_when_settled(CopyStreams::Lease& lease);
[[noreturn]] void rethrow_when_settled(const Ordering& order);
[[noreturn]] void rethrow_when_settled(const Engine& engine, const CallerStream& stream);

[[noreturn]] void reject_capture();

// Copies by runtime calls on the caller's stream, split at the ends of registrations, and counts it
// unless it is only recorded.
void plain_copy(Engine& engine, const Side& to, const Side& from, std::size_t bytes,
                const Ordering& order);

// An event after what is in the stream.
std::shared_ptr<gpu::Event> recorded(const Ordering& order);

// Runs a job that starts after an event (nullptr: at once) with the calling thread, and orders the
// caller's stream after it. False if that takes longer than the deadline: the job goes on.
bool run_after(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
               std::shared_ptr<const gpu::Event> event, const Deadline& deadline = {});
// The same with event_unless_idle().
bool run_ordered(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
                 const Deadline& deadline = {});

}  // namespace waywiser::transfer
