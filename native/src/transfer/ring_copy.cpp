#include "transfer/ring_copy.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "host/files.hpp"
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
constexpr double kStayOfSleepers = 20e-6;  // threads that sleep between copies

std::size_t ceiling(std::size_t bytes, std::size_t part) { return (bytes + part - 1) / part; }

std::size_t threads_of(const CopyShape& shape) { return std::max<std::size_t>(shape.threads, 1); }

}  // namespace

std::shared_ptr<RingCopy> RingCopy::make(Engine& engine, const Endpoint& to, const Endpoint& from,
                                         std::size_t bytes, const CopyShape& shape, bool at_once) {
    auto job = std::shared_ptr<RingCopy>(new RingCopy(engine, to, from, bytes, shape));
    if (at_once && job->open() && !job->to_gpu_) job->submit_first();
    return job;
}

RingCopy::RingCopy(Engine& engine, const Endpoint& to, const Endpoint& from, std::size_t bytes,
                   const CopyShape& shape)
    : Job(bytes, ceiling(bytes, threads_of(shape)), ceiling(bytes, threads_of(shape))),
      engine_(engine),
      stay_seconds_(engine.options().spin_seconds > 0 ? kStaySeconds : kStayOfSleepers),
      to_(to),
      from_(from),
      stream_slots_(shape.stream_slots),
      direct_io_(shape.direct_io),
      sync_(shape.sync),
      truncate_(shape.truncate),
      to_gpu_(to.kind == Endpoint::Kind::device),
      device_(std::max(to.gpu, from.gpu)),
      skew_((to_gpu_ ? from : to).offset % host::kDiskBlock),
      slot_bytes_(shape.chunk),
      piece_bytes_(shape.least),
      submissions_(ceiling(skew_ + bytes, slot_bytes_)),
      pieces_(ceiling(skew_ + bytes, piece_bytes_)),
      stream_(engine.streams().of({device_, to_gpu_ ? Direction::in : Direction::out})),
      slots_(std::min(submissions_, std::max<std::size_t>(shape.slots, 1))) {
    const GpuPlace* gpu = engine.machine().gpu(device_);
    if (gpu != nullptr) node_ = gpu->numa;
    if (from.kind == Endpoint::Kind::file) source_file_.emplace(from.file);
    if (to.kind == Endpoint::Kind::file) target_file_.emplace(to.file, writing_of(to, shape));
    most_threads_ = threads_of(shape);
    chunks_per_thread_ = 1;
    method_ = source_file_   ? WAYWISER_METHOD_READ
              : target_file_ ? WAYWISER_METHOD_WRITE
                             : WAYWISER_METHOD_RING;
    routes_.emplace_back();  // CPUs do the work of the chunks
}

// Takes the memory of the ring; false if there is none now. A ring that others leave too little
// memory for becomes smaller. A single slot may exceed what one transfer should have.
bool RingCopy::open() {
    if (is_open_) return true;
    if (opening_.exchange(true)) return false;  // another thread does so
    if (is_open_) {                             // it has, meanwhile
        opening_ = false;
        return true;
    }
    try {
        const std::size_t most = engine_.host_staging_budget(node_, device_) / 2;
        std::optional<Slot> memory;
        for (std::size_t slots = slots_; slots > 0 && !memory; slots /= 2) {
            const std::size_t needed = std::min(skew_ + bytes(), slots * slot_bytes_);
            if (std::bit_ceil(needed) > most && slots > 1) continue;
            memory = engine_.host_staging(node_, device_, needed);
            slots_ = memory ? slots : slots_;
        }
        if (memory) {
            std::vector<std::atomic<std::size_t>> progress(slots_);
            progress_.swap(progress);
            ends_.resize(slots_);
            while (events_.size() < slots_) events_.push_back(engine_.events().take(device_));
            memory_ = std::move(*memory);
            is_open_ = true;
        }
    } catch (...) {
        opening_ = false;
        throw;
    }
    opening_ = false;
    return is_open_;
}

// What the caller has submitted may still run if the copy could not start.
RingCopy::~RingCopy() {
    if (!memory_) return;
    settle();
    RingCopy::clear();
}

RingCopy::Part RingCopy::part(std::size_t number, std::size_t each) const {
    const std::size_t begin = std::max(number * each, skew_) - skew_;
    return {begin, std::min((number + 1) * each - skew_, bytes())};
}

std::size_t RingCopy::slot_of(std::size_t byte) const { return (skew_ + byte) / slot_bytes_; }

std::byte* RingCopy::place_of(std::size_t byte) const {
    return memory_.data() + (skew_ + byte) % (slots_ * slot_bytes_);
}

std::size_t RingCopy::pieces_of(std::size_t slot) const {
    const std::size_t each = slot_bytes_ / piece_bytes_;
    return std::min(each, pieces_ - slot * each);
}

void RingCopy::fill(Chunk& chunk) {
    Left left = Left::nothing;
    try {
        left = !open() ? Left::to_await : to_gpu_ ? fill_slots(chunk) : drain_slots();
    } catch (...) {
        broken_ = true;
        settle();
        throw;
    }
    if (broken_) {
        settle();  // this thread may have submitted after the one that failed
        left = Left::nothing;
    }
    chunk.unfinished = left == Left::to_await && !is_stopped();
    chunk.ends_job = left == Left::to_end;
    if (chunk.ends_job) add_moved(bytes());
    chunk.bytes = 0;  // counted at once: other chunks may complete after the job has ended
}

bool RingCopy::take(std::size_t& piece) { return next_.compare_exchange_weak(piece, piece + 1); }

RingCopy::Left RingCopy::fill_slots(const Chunk& chunk) {
    for (std::size_t number = next_; number < pieces_ && !is_stopped(); number = next_) {
        const Part piece = part(number, piece_bytes_);
        const std::size_t slot = slot_of(piece.begin);
        if (slot >= slots_ && !await_arrival(slot - slots_ + 1)) return Left::to_await;
        if (is_stopped() || !take(number)) continue;
        fill_piece(piece);
        if (progress_of(slot).fetch_add(1) + 1 == pieces_of(slot)) submit_ready();
    }
    return await_end(chunk);
}

// Fewer bytes are filled at the end of a file.
void RingCopy::fill_piece(const Part& piece) {
    const auto working = engine_.work_on_host();
    std::byte* const into = place_of(piece.begin);
    if (source_file_) {
        if (piece.begin >= moved_or_expected()) return;
        const std::size_t got =
            source_file_->read(into, piece.bytes(), from_.offset + piece.begin, direct_io_);
        if (got < piece.bytes()) ends_at(piece.begin + got);
    } else if (stream_slots_) {
        host::copy_streaming(into, from_.data + piece.begin, piece.bytes());
    } else {
        std::memcpy(into, from_.data + piece.begin, piece.bytes());
    }
}

void RingCopy::drain_piece(const Part& piece) {
    const auto working = engine_.work_on_host();
    const std::byte* const from = place_of(piece.begin);
    if (target_file_) {
        target_file_->write(from, piece.bytes(), to_.offset + piece.begin);
    } else {
        copy_to_fresh(to_.data + piece.begin, from, piece.bytes(), true);
    }
}

// One thread waits until the GPU has copied the last slot. It returns first: its caller may not
// want to wait for that.
RingCopy::Left RingCopy::await_end(const Chunk& chunk) {
    if (is_stopped() || is_ending_) return Left::nothing;
    const Chunk* known = nullptr;
    if (ender_.compare_exchange_strong(known, &chunk)) return Left::to_await;
    if (known != &chunk) return Left::nothing;
    if (!await_arrival(submissions_)) return Left::to_await;
    if (is_stopped()) return Left::nothing;
    is_ending_ = true;  // threads that join later find nothing to do
    return Left::to_end;
}

// Drains pieces of slots that have arrived. After the last one no other thread uses the memory or
// the events any more: each took its pieces before.
RingCopy::Left RingCopy::drain_slots() {
    submit_ready();
    bool last = false;
    for (std::size_t number = next_; number < pieces_ && !is_stopped(); number = next_) {
        const Part piece = part(number, piece_bytes_);
        const std::size_t slot = slot_of(piece.begin);
        if (!await_arrival(slot + 1)) return Left::to_await;
        if (is_stopped() || !take(number)) continue;
        drain_piece(piece);
        const bool is_drained = progress_of(slot).fetch_add(1) + 1 == pieces_of(slot);
        if (is_drained && submitted_ < submissions_) submit_ready();
        last = drained_.fetch_add(1) + 1 == pieces_;
    }
    return last ? Left::to_end : Left::nothing;
}

// A thread that finds another one submitting goes on: that one looks again.
void RingCopy::submit_ready() {
    while (is_ready(submitted_) && !submitting_.exchange(true)) {
        try {
            while (is_ready(submitted_)) submit_next();
        } catch (...) {
            submitting_ = false;
            throw;
        }
        submitting_ = false;
    }
}

// Whether the GPU may copy the slot now: CPUs have filled it, or drained what was in it before.
bool RingCopy::is_ready(std::size_t slot) {
    if (slot >= submissions_ || is_stopped()) return false;
    if (to_gpu_) {
        // Until it has arrived, the progress of the slot is that of an earlier one.
        return slot < arrived_ + slots_ && progress_of(slot) == pieces_of(slot);
    }
    return slot < slots_ || progress_of(slot) == pieces_of(slot - slots_);
}

// By one thread at a time. To a GPU, neighbours in the ring are copied by one call: it pauses
// between calls.
void RingCopy::submit_next() {
    const std::size_t first = submitted_;
    std::size_t end = first + 1;
    if (to_gpu_) {
        while (end % slots_ != 0 && is_ready(end)) ++end;
    } else if (first >= slots_) {
        progress_of(first) = 0;
    }
    submit(first, end);
}

void RingCopy::submit(std::size_t first, std::size_t end) {
    const std::size_t at = part(first, slot_bytes_).begin;
    // A file may have ended before.
    const std::size_t all = std::min(part(end - 1, slot_bytes_).end, moved_or_expected());
    const std::size_t call = calls_.load(std::memory_order_relaxed);
    std::byte* const memory = place_of(at);
    if (all > at) {
        gpu::copy_async(to_gpu_ ? to_.data + at : memory, to_gpu_ ? memory : from_.data + at,
                        all - at, stream_);
    }
    const std::shared_ptr<gpu::Event>& event = events_[call % slots_];
    event->record(stream_);
    ends_[call % slots_] = end;
    if (end == submissions_) {
        last_event_ = event;
        add_in_flight(last_event_);
        engine_.announce_submitted(*this);
    }
    calls_.store(call + 1, std::memory_order_release);
    submitted_.store(end, std::memory_order_release);
}

// By the caller, while other threads learn of the copy. What it throws is what the copy fails with.
void RingCopy::submit_first() {
    try {
        submit(0, 1);
    } catch (...) {
        broken_ = true;
        settle();
        fail(std::current_exception());
    }
}

bool RingCopy::await_arrival(std::size_t slots) {
    const auto has_arrived = [&] {
        if (is_stopped() || arrived_.load(std::memory_order_acquire) >= slots) return true;
        query_oldest();
        return false;  // it looks again
    };
    return poll(has_arrived, Deadline(stay_seconds_), kArrival);
}

// Threads that all ask the driver hold up the one that submits.
void RingCopy::query_oldest() {
    if (calls_.load(std::memory_order_acquire) <= ended_.load(std::memory_order_acquire) ||
        querying_.load(std::memory_order_relaxed) || querying_.exchange(true)) {
        return;
    }
    try {
        // Only the thread that asks changes them.
        const std::size_t oldest = ended_.load(std::memory_order_relaxed);
        if (oldest < calls_.load(std::memory_order_acquire) && events_[oldest % slots_]->done()) {
            const std::size_t end = ends_[oldest % slots_];
            if (to_gpu_) {
                for (std::size_t slot = arrived_; slot < end; ++slot) progress_of(slot) = 0;
            }
            engine_.note_progress();
            ended_.store(oldest + 1, std::memory_order_release);
            arrived_.store(end, std::memory_order_release);
        }
    } catch (...) {
        querying_ = false;
        throw;
    }
    querying_.store(false, std::memory_order_release);
}

// After a failure: waits until no GPU uses the memory of the ring.
void RingCopy::settle() noexcept {
    const Settled now = transfer::settle(stream_);
    if (now == Settled::yes) return;
    settled_ = now;
    if (now == Settled::no) keep_in_use();
}

void RingCopy::finish() {
    remove_in_flight(last_event_);
    last_event_.reset();
    events_.clear();
    if (target_file_) target_file_->finish(to_.offset + bytes(), truncate_, sync_);
}

// No thread works on the copy any more, and no GPU, unless it has failed or was cancelled.
void RingCopy::clear() noexcept {
    if (failed() && settled_ == Settled::yes) settle();
    if (settled_ != Settled::yes) memory_.abandon(settled_);
    memory_.release();
}

}  // namespace waywiser::transfer
