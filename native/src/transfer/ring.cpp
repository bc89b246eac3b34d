#include "transfer/ring.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>
#include <utility>

#include "transfer/byte_text.hpp"
#include "transfer/job.hpp"
#include "transfer/profiler.hpp"
#include "transfer/route_queue.hpp"
#include "transfer/schedule.hpp"
#include "transfer/staging_pools.hpp"

namespace waywiser::transfer {
namespace {

// A thread that waits for the GPU spins, and then leaves for a moment: its caller may have waited
// long enough, or the context is closed.
constexpr Polling kArrival{.spin = std::chrono::milliseconds(1),
                           .pause = std::chrono::nanoseconds(0),
                           .sleep = std::chrono::microseconds(10)};

constexpr double kStayWithoutPieces = 200e-6;

std::size_t ceiling(std::size_t bytes, std::size_t part) { return (bytes + part - 1) / part; }

// For a profiler: "waywiser fill 1 MiB chunked".
std::string text_of_work(const char* step, const Part& part, const Job& job) {
    return std::string("waywiser ") + step + ' ' + text_of_bytes(part.bytes) + ' ' +
           name_of_method(job.method());
}

}  // namespace

Ring::Ring(Job& job, const Route& route, RouteQueue& queue, const RingResources& resources)
    : job_(job),
      route_(route),
      queue_(queue),
      resources_(resources),
      has_gpu_(route.device >= 0),
      fills_(job.cpu_work() == CpuWork::fills),
      drains_(job.cpu_work() == CpuWork::drains),
      has_pieces_(job.cpu_work() != CpuWork::none) {}

// What was submitted may still run if the job could not start.
Ring::~Ring() { clear(queue_.clear(true)); }

// A thread that has come too late may be taking memory: other rings have moved all bytes.
bool Ring::close() noexcept {
    poll([&] { return !taking_memory_.exchange(true); }, Deadline(), kArrival);
    const bool is_first = !std::exchange(is_closed_, true);
    taking_memory_ = false;
    return is_first;
}

void Ring::clear(Settled settled) noexcept {
    if (!close()) return;
    for (Slot* const each : {&memory_, &bounce_}) {
        if (settled != Settled::yes) each->abandon(settled);
        each->release();
    }
}

// --- memory ----------------------------------------------------------------------------------

Ring::Memory Ring::open() {
    if (is_open_.load(std::memory_order_acquire)) return Memory::ready;
    const Turn turn(taking_memory_);
    if (!turn || is_closed_) return Memory::busy;
    if (!is_open_ && !take_memory()) return Memory::none;
    is_open_.store(true, std::memory_order_release);
    return Memory::ready;
}

// The scarcer memory comes first: if there is none, the other one is not touched.
bool Ring::take_memory() {
    const Division& cut = job_.division();
    const std::size_t whole = ceiling(cut.first + job_.bytes(), cut.slot);
    std::size_t slots = std::min(std::max<std::size_t>(cut.slots, 1), whole);
    StagingPools& staging = resources_.staging;
    if (route_.through_gpu) {
        bounce_ = staging.take_slots(staging.on_device(route_.device), cut.slot, slots);
        if (!bounce_) return false;
    }
    if (route_.through_host) {
        Slots& pool = staging.host(job_.node(), route_.device);
        memory_ = staging.take_slots(pool, cut.memory_of_slot(), slots);
        if (!memory_) {
            bounce_.release();
            return false;
        }
    }
    slots_ = slots;
    for (auto* const each : {&begins_, &ends_, &left_}) {
        std::vector<std::atomic<std::size_t>> made(slots);
        each->swap(made);
    }
    return true;
}

void Ring::start_early() {
    if (open() != Memory::ready || !has_gpu_ || fills_) return;
    queue_.submit_first();
}

Part Ring::part_of(std::size_t slot) const {
    const std::size_t begin = begins_[index(slot)].load(std::memory_order_relaxed);
    return {begin, ends_[index(slot)].load(std::memory_order_relaxed) - begin};
}

// Their borders are those of slots, and of blocks in a file.
std::size_t Ring::pieces_of(const Part& part) const {
    const Division& cut = job_.division();
    const std::size_t skew = (cut.first + part.at) % cut.piece;
    return ceiling(skew + part.bytes, cut.piece);
}

std::byte* Ring::place_of(std::size_t slot, std::size_t at) const {
    if (!memory_) return nullptr;
    const Division& cut = job_.division();
    return memory_.data() + index(slot) * cut.memory_of_slot() + (cut.first + at) % cut.slot;
}

std::byte* Ring::bounce_of(std::size_t slot) const {
    return bounce_ ? bounce_.data() + index(slot) * job_.division().slot : nullptr;
}

// --- pieces ----------------------------------------------------------------------------------

bool Ring::is_free(std::size_t slot) const {
    if (fills_ || !has_pieces_) return slot < arrived_.load(std::memory_order_acquire) + slots_;
    return left_[index(slot)].load(std::memory_order_acquire) == 0;
}

void Ring::open_slot() {
    const Turn turn(opening_);
    if (!turn) return;
    const std::size_t slot = opened_.load(std::memory_order_relaxed);
    if (!is_free(slot)) return;
    const Part part = job_.take_part();
    if (part.bytes == 0) return;
    begins_[index(slot)].store(part.at, std::memory_order_relaxed);
    ends_[index(slot)].store(part.end(), std::memory_order_relaxed);
    left_[index(slot)].store(has_pieces_ ? pieces_of(part) : 0, std::memory_order_relaxed);
    opened_.store(slot + 1, std::memory_order_release);
}

std::size_t Ring::pieces_left() const {
    const std::size_t each = job_.division().pieces_of_slot();
    const std::size_t next = next_.load(std::memory_order_relaxed);
    return std::max(opened_.load(std::memory_order_relaxed) * each, next) - next;
}

// The part of a slot may be read while the slot is used again; then another thread has taken its
// last piece before, and the number of the next piece has changed.
Ring::Take Ring::take(Piece& piece) {
    const Division& cut = job_.division();
    for (;;) {
        std::size_t number = next_.load(std::memory_order_acquire);
        const std::size_t slot = number / cut.pieces_of_slot();
        if (slot >= opened_.load(std::memory_order_acquire)) {
            if (drains_) {  // who submits opens it
                const bool opens = opening_.load() || queue_.is_submitting();
                const bool is_last = job_.has_all_parts() && !opens;
                if (slot < opened_.load(std::memory_order_acquire)) continue;
                return is_last ? Take::none : Take::blocked;
            }
            if (job_.has_all_parts()) {
                if (opening_.load() || slot < opened_.load(std::memory_order_acquire)) continue;
                return Take::none;
            }
            if (!is_free(slot)) return Take::blocked;
            open_slot();
            continue;
        }
        if (drains_ && slot >= arrived_.load(std::memory_order_acquire)) return Take::blocked;
        const Part part = part_of(slot);
        const std::size_t within = number % cut.pieces_of_slot();
        const bool is_last = within + 1 >= pieces_of(part);
        const std::size_t after = is_last ? (slot + 1) * cut.pieces_of_slot() : number + 1;
        if (!next_.compare_exchange_weak(number, after)) continue;
        const std::size_t skew = (cut.first + part.at) % cut.piece;
        const std::size_t begin = within == 0 ? part.at : part.at - skew + within * cut.piece;
        const std::size_t end = is_last ? part.end() : part.at - skew + (within + 1) * cut.piece;
        piece = {.slot = slot, .part = {begin, end - begin}};
        return Take::taken;
    }
}

void Ring::move(const Piece& piece) {
    {
        const ProfilerRange range(
            [&] { return text_of_work(drains_ ? "drain" : "fill", piece.part, job_); });
        std::byte* const place = place_of(piece.slot, piece.part.at);
        if (drains_) {
            job_.drain(piece.part, place);
        } else {
            job_.fill(piece.part, place);
        }
    }
    const Part whole = part_of(piece.slot);  // before others use the slot again
    const bool is_last = left_[index(piece.slot)].fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (!is_last || fills_) return;
    resources_.schedule.note_progress();
    job_.note_complete(whole.bytes, job_.before_end(whole));
}

// --- work ------------------------------------------------------------------------------------

void Ring::look() {
    if (!is_open() || !has_gpu_) return;
    queue_.query_oldest();
    queue_.submit_ready();
}

Step Ring::work() {
    if (!is_open() && job_.has_all_parts()) return Step::nothing;
    const Memory memory = open();
    if (memory != Memory::ready) {
        return memory == Memory::none ? Step::no_memory : Step::awaits;
    }
    if (!has_pieces_) return await_end();
    Schedule::HostWork working(resources_.schedule, false);
    while (!job_.is_stopped()) {
        if (has_gpu_ && can_submit()) {
            working.stop();
            queue_.submit_ready();
        }
        Piece piece;
        switch (take(piece)) {
            case Take::taken:
                working.start();
                move(piece);
                if (!resources_.schedule.has_unserved()) break;
                working.stop();
                if (has_gpu_) queue_.submit_ready();
                return Step::yields;
            case Take::none: working.stop(); return fills_ ? await_end() : Step::nothing;
            case Take::blocked: {
                working.stop();
                const std::size_t opened = opened_;
                const std::size_t arrived = arrived_;
                const std::size_t next = next_;
                const auto has_changed = [&] {
                    return opened_ != opened || arrived_ != arrived || next_ != next ||
                           (!has_gpu_ && is_free(opened));
                };
                if (!await(has_changed)) return Step::awaits;
                break;
            }
        }
    }
    return Step::nothing;
}

// One thread waits until the GPU has copied the last slot. When all is submitted it returns once:
// its caller may not want to wait for more.
Step Ring::await_end() {
    const Turn turn(ending_);
    if (!turn) return Step::nothing;
    const bool was_submitted = job_.all_submitted();
    while (!job_.is_stopped()) {
        queue_.submit_ready();
        const std::size_t arrived = arrived_.load(std::memory_order_acquire);
        if (job_.has_all_parts() && arrived == opened_.load(std::memory_order_acquire)) break;
        if (!was_submitted && job_.all_submitted()) return Step::submitted;
        if (!await([&] { return arrived_ != arrived; })) return Step::awaits;
    }
    return Step::nothing;
}

template <class Condition>
bool Ring::await(const Condition& condition) {
    const auto changed = [&] {
        if (job_.is_stopped() || condition()) return true;
        if (has_gpu_) queue_.query_oldest();
        if (queue_.holds_back()) queue_.submit_ready();
        return false;  // it looks again
    };
    // Without CPUs the GPU would have nothing to do while the only thread sleeps.
    const double stay = has_pieces_ ? resources_.stay_seconds
                                    : std::max(resources_.stay_seconds, kStayWithoutPieces);
    return poll(changed, Deadline(stay), kArrival);
}

// --- for the queue of its route ---------------------------------------------------------------

bool Ring::is_ready(std::size_t slot) const {
    return slot < opened_.load(std::memory_order_acquire) &&
           left_[index(slot)].load(std::memory_order_acquire) == 0;
}

bool Ring::can_submit() const {
    if (!is_open() || job_.is_stopped()) return false;
    const std::size_t slot = submitted_.load(std::memory_order_acquire);
    if (fills_) return is_ready(slot);
    return slot < opened_.load(std::memory_order_acquire) ||
           (!job_.has_all_parts() && is_free(slot));
}

Ring::Run Ring::next_run(bool joins) {
    const std::size_t first = submitted_.load(std::memory_order_relaxed);
    Run run{.ring = this, .first = first, .end = first};
    if (!is_open()) return run;
    if (!fills_ && first >= opened_.load(std::memory_order_acquire)) open_slot();
    if (fills_ ? !is_ready(first) : first >= opened_.load(std::memory_order_acquire)) return run;
    run.bytes = part_of(run.end++).bytes;
    const bool all = joins && fills_ && job_.division().joins;
    while (all && index(run.end) != 0 && is_ready(run.end) &&
           part_of(run.end).at == part_of(run.end - 1).end()) {
        run.bytes += part_of(run.end++).bytes;
    }
    return run;
}

Submission Ring::submission(const Run& run) const {
    const std::size_t at = part_of(run.first).at;
    // A file may have ended before.
    const std::size_t all = std::min(part_of(run.end - 1).end(), job_.moved_or_expected());
    return {.part = {at, std::max(all, at) - at},
            .slot = place_of(run.first, at),
            .bounce = bounce_of(run.first)};
}

std::size_t Ring::note_arrived(const Run& run) {
    std::size_t moved = 0;
    for (std::size_t slot = run.first; slot < run.end; ++slot) {
        moved += job_.before_end(part_of(slot));
    }
    arrived_.store(run.end, std::memory_order_release);
    return moved;
}

}  // namespace waywiser::transfer
