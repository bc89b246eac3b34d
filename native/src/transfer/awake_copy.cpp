#include "transfer/awake_copy.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "host/streaming.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {
namespace {

// A thread that waits for the GPU spins; after that long some other copy is before it. Then the
// thread leaves for a moment: its caller may have waited long enough, or the context is closed.
constexpr Polling kArrival{.spin = std::chrono::milliseconds(1),
                           .pause = std::chrono::nanoseconds(0),
                           .sleep = std::chrono::microseconds(10)};
constexpr double kStaySeconds = 1e-3;

std::size_t ceiling(std::size_t bytes, std::size_t part) { return (bytes + part - 1) / part; }

std::size_t threads_of(const CopyShape& shape) { return std::max<std::size_t>(shape.threads, 1); }

}  // namespace

std::shared_ptr<AwakeCopy> AwakeCopy::make(Engine& engine, const Endpoint& to, const Endpoint& from,
                                           std::size_t bytes, const CopyShape& shape) {
    const int device = std::max(to.gpu, from.gpu);
    const GpuPlace* gpu = engine.machine().gpu(device);
    const int node = gpu != nullptr ? gpu->numa : -1;
    if (std::bit_ceil(bytes) > engine.host_staging_budget(node, device) / 2) return nullptr;
    std::optional<Slot> slot = engine.host_staging(node, device, bytes);
    if (!slot) return nullptr;
    auto job =
        std::shared_ptr<AwakeCopy>(new AwakeCopy(engine, to, from, bytes, shape, std::move(*slot)));
    job->node_ = node;
    if (!job->to_gpu_) job->submit_first();
    return job;
}

AwakeCopy::AwakeCopy(Engine& engine, const Endpoint& to, const Endpoint& from, std::size_t bytes,
                     const CopyShape& shape, Slot slot)
    : Job(bytes, ceiling(bytes, threads_of(shape)), ceiling(bytes, threads_of(shape))),
      pool_(engine.events()),
      to_(to.data),
      from_(from.data),
      to_gpu_(to.kind == Endpoint::Kind::device),
      device_(std::max(to.gpu, from.gpu)),
      submission_(shape.chunk),
      piece_(shape.least),
      submissions_(ceiling(bytes, submission_)),
      pieces_(ceiling(bytes, piece_)),
      stream_(engine.streams().of({device_, to_gpu_ ? Direction::in : Direction::out})),
      slot_(std::move(slot)),
      progress_(submissions_) {
    most_threads_ = threads_of(shape);
    method_ = WAYWISER_METHOD_AWAKE;
    // To a GPU, the chunk of the thread that has filled the last piece is in flight until the GPU
    // has read all of them. CPUs do the work of the other chunks.
    routes_.push_back(to_gpu_ ? Route{.device = device_, .direction = Direction::in} : Route{});
    if (to_gpu_) return;
    chunks_per_thread_ = 1;
    for (std::size_t i = 0; i < submissions_; ++i) events_.push_back(pool_.take(device_));
}

// What the caller has submitted may still run if the copy could not start.
AwakeCopy::~AwakeCopy() {
    if (!slot_) return;
    settle();
    AwakeCopy::clear();
}

std::size_t AwakeCopy::bytes_of(std::size_t number, std::size_t each) const {
    return std::min(each, bytes() - number * each);
}

void AwakeCopy::fill(Chunk& chunk) {
    try {
        chunk.unfinished = false;
        if (to_gpu_) {
            chunk.bytes = fill_pieces() ? bytes() : 0;
        } else {
            if (!submitting_.exchange(true)) {
                while (submitted_ < submissions_) submit_next();
            }
            const Drained drained = drain_pieces();
            chunk.unfinished = drained == Drained::none_arrives;
            chunk.ends_job = drained == Drained::all;
            if (chunk.ends_job) add_moved(bytes());
            chunk.bytes = 0;  // counted at once: other chunks may complete after the job has ended
        }
    } catch (...) {
        broken_ = true;
        settle();
        throw;
    }
    if (broken_) {
        settle();  // this thread may have submitted after the one that failed
        chunk.unfinished = false;
        chunk.bytes = 0;
    }
}

// Whether this thread has filled the last piece, so that all of them are submitted.
bool AwakeCopy::fill_pieces() {
    bool last = false;
    for (;;) {
        const std::size_t piece = next_.fetch_add(1);
        if (piece >= pieces_ || broken_) return last;
        const std::size_t at = piece * piece_;
        const std::size_t bytes = bytes_of(piece, piece_);
        // The GPU reads caches of several CPUs more slowly than memory (measured on H100).
        host::copy_streaming(slot_.data() + at, from_ + at, bytes);
        const std::size_t submission = at / submission_;
        const std::size_t filled = progress_[submission].fetch_add(bytes) + bytes;
        if (filled == bytes_of(submission, submission_)) last = submit_filled(submission);
    }
}

// Whether it was the last one.
bool AwakeCopy::submit_filled(std::size_t submission) {
    const std::size_t at = submission * submission_;
    gpu::copy_async(to_ + at, slot_.data() + at, bytes_of(submission, submission_), stream_);
    return submitted_.fetch_add(1) + 1 == submissions_;
}

// By the caller, while other threads learn of the copy. What it throws is what the copy fails with.
void AwakeCopy::submit_first() {
    try {
        submit_next();
    } catch (...) {
        broken_ = true;
        settle();
        fail(std::current_exception());
    }
}

// By one thread at a time, from the GPU.
void AwakeCopy::submit_next() {
    const std::size_t number = submitted_.load(std::memory_order_relaxed);
    const std::size_t at = number * submission_;
    gpu::copy_async(slot_.data() + at, from_ + at, bytes_of(number, submission_), stream_);
    events_[number]->record(stream_);
    if (number + 1 == submissions_) {
        add_in_flight(events_.back());
        set_submitted();
    }
    submitted_.store(number + 1, std::memory_order_release);
}

// Drains pieces of submissions that have arrived. `all`: this thread has drained the last one,
// after which no other thread uses the staging memory or the events any more: each took its pieces
// before.
AwakeCopy::Drained AwakeCopy::drain_pieces() {
    bool last = false;
    for (std::size_t number = 0; number < submissions_; ++number) {
        const auto arrives = [&] { return broken_ || has_arrived(number); };
        if (!poll(arrives, Deadline(kStaySeconds), kArrival)) return Drained::none_arrives;
        if (broken_) return Drained::until_last_piece;
        const std::size_t bytes = bytes_of(number, submission_);
        const std::size_t first = number * submission_;
        for (;;) {
            const std::size_t at = progress_[number].fetch_add(1) * piece_;
            if (at >= bytes) break;
            copy_to_fresh(to_ + first + at, slot_.data() + first + at, std::min(piece_, bytes - at),
                          true);
            last = drained_.fetch_add(1) + 1 == pieces_;
        }
    }
    return last ? Drained::all : Drained::until_last_piece;
}

// Threads that all ask the driver hold up the one that submits.
bool AwakeCopy::has_arrived(std::size_t submission) {
    const std::size_t arrived = arrived_.load(std::memory_order_acquire);
    if (arrived > submission) return true;
    if (submitted_.load(std::memory_order_acquire) <= arrived ||
        querying_.load(std::memory_order_relaxed) || querying_.exchange(true)) {
        return false;
    }
    try {
        // Only the thread that asks changes it.
        const std::size_t oldest = arrived_.load(std::memory_order_relaxed);
        if (oldest < submitted_.load(std::memory_order_acquire) && events_[oldest]->done()) {
            arrived_.store(oldest + 1, std::memory_order_release);
        }
    } catch (...) {
        querying_ = false;
        throw;
    }
    querying_.store(false, std::memory_order_release);
    return false;  // the caller looks again
}

// After a failure: waits until no GPU uses the staging memory.
void AwakeCopy::settle() noexcept {
    const Settled now = transfer::settle(stream_);
    if (now == Settled::yes) return;
    settled_ = now;
    if (now == Settled::no) keep_in_use();
}

void AwakeCopy::finish() {
    if (to_gpu_) return;
    remove_in_flight(events_.back());
    for (auto& event : events_) pool_.give_back(device_, std::move(event));
    events_.clear();
}

// No thread works on the copy any more, and no GPU, unless it has failed after fill().
void AwakeCopy::clear() noexcept {
    if (to_gpu_ && failed() && settled_ == Settled::yes) settle();
    if (settled_ != Settled::yes) slot_.abandon(settled_);
    slot_.release();
}

}  // namespace waywiser::transfer
