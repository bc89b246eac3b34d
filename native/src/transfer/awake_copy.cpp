#include "transfer/awake_copy.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "host/relax.hpp"
#include "host/streaming.hpp"

namespace waywiser::transfer {
namespace {

// A thread that waits for the GPU spins for so long: some other copy is before it then.
constexpr auto kSpin = std::chrono::milliseconds(1);
constexpr auto kNap = std::chrono::microseconds(10);
constexpr unsigned kLooksBetweenYields = 64;
// A thread that asks for events all the time holds up the one that submits: at the driver's lock.
constexpr auto kBetweenQueries = std::chrono::nanoseconds(1500);

std::size_t ceiling(std::size_t bytes, std::size_t part) { return (bytes + part - 1) / part; }

std::size_t threads_of(const CopyShape& shape) { return std::max<std::size_t>(shape.threads, 1); }

}  // namespace

std::shared_ptr<AwakeCopy> AwakeCopy::make(Engine& engine, const End& to, const End& from,
                                           std::size_t bytes, const CopyShape& shape) {
    if (std::bit_ceil(bytes) > engine.options().pinned_bytes / 2) return nullptr;  // others need some
    const int device = std::max(to.gpu, from.gpu);
    const GpuPlace* gpu = engine.machine().gpu(device);
    const int node = gpu != nullptr ? gpu->numa : -1;
    std::optional<Slot> slot = engine.host_staging(node, device, bytes);
    if (!slot) return nullptr;
    auto job =
        std::shared_ptr<AwakeCopy>(new AwakeCopy(engine, to, from, bytes, shape, std::move(*slot)));
    job->node_ = node;
    return job;
}

AwakeCopy::AwakeCopy(Engine& engine, const End& to, const End& from, std::size_t bytes,
                     const CopyShape& shape, Slot slot)
    : Job(bytes, ceiling(bytes, threads_of(shape)), ceiling(bytes, threads_of(shape))),
      pool_(engine.events()),
      to_(to.data),
      from_(from.data),
      to_gpu_(to.kind == End::Kind::device),
      device_(std::max(to.gpu, from.gpu)),
      piece_(shape.chunk),
      pieces_(ceiling(bytes, shape.chunk)),
      stream_(engine.streams().of({device_, to_gpu_ ? Direction::in : Direction::out})),
      slot_(std::move(slot)) {
    most_threads_ = threads_of(shape);
    routes_.push_back({});  // CPUs do the work of its chunks
    const std::size_t events = to_gpu_ ? 1 : pieces_;
    for (std::size_t i = 0; i < events; ++i) events_.push_back(pool_.take(device_));
}

AwakeCopy::~AwakeCopy() {
    if (may_be_in_use_) slot_.abandon();
}

std::size_t AwakeCopy::bytes_of(std::size_t piece) const {
    return std::min(piece_, bytes() - piece * piece_);
}

void AwakeCopy::fill(Chunk&) {
    try {
        if (to_gpu_) {
            fill_pieces();
        } else {
            if (!submitting_.exchange(true)) submit_pieces();
            drain_pieces();
        }
    } catch (...) {
        broken_ = true;
        settle();
        throw;
    }
    if (broken_) settle();  // this thread may have submitted after the one that failed
}

void AwakeCopy::fill_pieces() {
    for (;;) {
        const std::size_t piece = next_.fetch_add(1);
        if (piece >= pieces_ || broken_) return;
        const std::size_t at = piece * piece_;
        std::byte* const staged = slot_.data() + at;
        // The GPU reads caches of several CPUs more slowly than memory (measured on H100).
        host::copy_streaming(staged, from_ + at, bytes_of(piece));
        gpu::copy_async(to_ + at, staged, bytes_of(piece), stream_);
        if (submitted_.fetch_add(1) + 1 < pieces_) continue;
        events_.front().record(stream_);
        add_in_flight(events_.front());
    }
}

void AwakeCopy::submit_pieces() {
    for (std::size_t piece = 0; piece < pieces_; ++piece) {
        const std::size_t at = piece * piece_;
        gpu::copy_async(slot_.data() + at, from_ + at, bytes_of(piece), stream_);
        events_[piece].record(stream_);
        if (piece + 1 == pieces_) {
            add_in_flight(events_.back());
            set_submitted();
        }
        submitted_.store(piece + 1, std::memory_order_release);
    }
}

void AwakeCopy::drain_pieces() {
    for (;;) {
        const std::size_t piece = next_.fetch_add(1);
        if (piece >= pieces_) return;
        const auto is_submitted = [&] {
            return submitted_.load(std::memory_order_acquire) > piece;
        };
        if (!wait_for(is_submitted, {})) return;
        if (!wait_for([&] { return events_[piece].done(); }, kBetweenQueries)) return;
        const std::size_t at = piece * piece_;
        copy_to_fresh(to_ + at, slot_.data() + at, bytes_of(piece), true);
    }
}

// Looks at the condition, `pause` after each time. False if another thread has failed.
template <class Condition>
bool AwakeCopy::wait_for(const Condition& condition, std::chrono::nanoseconds pause) const {
    const auto start = std::chrono::steady_clock::now();
    for (unsigned looks = 1; !condition(); ++looks) {
        if (broken_) return false;
        const auto now = std::chrono::steady_clock::now();
        if (now - start >= kSpin) {
            std::this_thread::sleep_for(kNap);
        } else if (looks % kLooksBetweenYields == 0) {
            std::this_thread::yield();
        } else {
            do {
                host::relax();
            } while (std::chrono::steady_clock::now() - now < pause);
        }
    }
    return true;
}

// After a failure: waits until no GPU uses the staging memory.
void AwakeCopy::settle() noexcept {
    try {
        stream_.synchronize();
    } catch (const gpu::Error&) {
        may_be_in_use_ = true;
    }
}

// Called once, by one thread, after the work of all others.
void AwakeCopy::finish() {
    try {
        if (to_gpu_) wait_for([&] { return events_.front().done(); }, kBetweenQueries);
    } catch (...) {
        settle();
        throw;
    }
    remove_in_flight(events_.back());
    for (gpu::Event& event : events_) pool_.give_back(device_, std::move(event));
    events_.clear();
    slot_.release();
}

}  // namespace waywiser::transfer
