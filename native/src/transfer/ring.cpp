#include "transfer/ring.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>
#include <utility>

#include "transfer/byte_text.hpp"
#include "transfer/copy_streams.hpp"
#include "transfer/job.hpp"
#include "transfer/job_end.hpp"
#include "transfer/polite_queues.hpp"
#include "transfer/profiler.hpp"
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

// A flag that this thread has set, until it leaves.
class Turn {
public:
    explicit Turn(std::atomic<bool>& flag)
        : flag_(flag), is_own_(!flag.load(std::memory_order_relaxed) && !flag.exchange(true)) {}
    ~Turn() {
        if (is_own_) flag_.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return is_own_; }

private:
    std::atomic<bool>& flag_;
    const bool is_own_;
};

// For a profiler: "waywiser fill 1 MiB chunked".
std::string text_of_work(const char* step, const Part& part, const Job& job) {
    return std::string("waywiser ") + step + ' ' + text_of_bytes(part.bytes) + ' ' +
           name_of_method(job.method());
}

}  // namespace

Ring::Ring(Job& job, const Route& route, const RingResources& resources)
    : job_(job),
      route_(route),
      resources_(resources),
      has_gpu_(route.device >= 0),
      fills_(job.cpu_work() == CpuWork::fills),
      drains_(job.cpu_work() == CpuWork::drains),
      has_pieces_(job.cpu_work() != CpuWork::none) {}

// What was submitted may still run if the job could not start.
Ring::~Ring() { static_cast<void>(clear(true)); }

// A thread that has come too late may be taking memory: other rings have moved all bytes.
bool Ring::close() noexcept {
    poll([&] { return !taking_memory_.exchange(true); }, Deadline(), kArrival);
    const bool is_first = !std::exchange(is_closed_, true);
    taking_memory_ = false;
    return is_first;
}

Settled Ring::clear(bool failed) noexcept {
    if (!close()) return Settled::yes;
    Settled settled = job_.is_in_use() ? Settled::no : Settled::yes;
    for (const gpu::Stream* used : {stream_, second_}) {
        if (used == nullptr || !failed || settled == Settled::no) continue;
        const Settled now = settle(*used);
        if (now != Settled::yes) settled = now;
    }
    stream_ = nullptr;
    second_ = nullptr;
    resources_.queues.leave(route_.lane(), queued_.exchange(0));
    for (Slot* const each : {&memory_, &bounce_}) {
        if (settled != Settled::yes) each->abandon(settled);
        each->release();
    }
    events_.clear();
    handovers_.clear();
    return settled;
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
    use_slots(slots);
    return true;
}

void Ring::use_slots(std::size_t slots) {
    slots_ = slots;
    for (auto* const each : {&begins_, &ends_, &left_}) {
        std::vector<std::atomic<std::size_t>> made(slots);
        each->swap(made);
    }
    if (!has_gpu_) return;
    slots_after_.resize(slots);
    while (events_.size() < slots) {
        events_.push_back(resources_.events.take(route_.last_device()));
        if (route_.second_device < 0) continue;
        handovers_.push_back(resources_.events.take(route_.device));
    }
    stream_ = &resources_.streams.of(route_.lane());
    if (route_.second_device >= 0) second_ = &resources_.streams.of(route_.second_lane());
}

void Ring::start_early() {
    if (open() != Memory::ready || !has_gpu_ || fills_) return;
    bool held_back = false;
    static_cast<void>(submit_next(held_back));
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
                const bool opens = opening_.load() || submitting_.load();
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
    query_oldest();
    submit_ready();
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
            submit_ready();
        }
        Piece piece;
        switch (take(piece)) {
            case Take::taken:
                working.start();
                move(piece);
                if (!resources_.schedule.has_unserved()) break;
                working.stop();
                if (has_gpu_) submit_ready();
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
        submit_ready();
        const std::size_t arrived = arrived_.load(std::memory_order_acquire);
        if (job_.has_all_parts() && arrived == opened_.load(std::memory_order_acquire)) break;
        if (!was_submitted && job_.all_submitted()) return Step::awaits;
        if (!await([&] { return arrived_ != arrived; })) return Step::awaits;
    }
    return Step::nothing;
}

template <class Condition>
bool Ring::await(const Condition& condition) {
    const auto changed = [&] {
        if (job_.is_stopped() || condition()) return true;
        if (has_gpu_) query_oldest();
        return false;  // it looks again
    };
    // Without CPUs the GPU would have nothing to do while the only thread sleeps.
    const double stay = has_pieces_ ? resources_.stay_seconds
                                    : std::max(resources_.stay_seconds, kStayWithoutPieces);
    return poll(changed, Deadline(stay), kArrival);
}

// --- submissions -----------------------------------------------------------------------------

bool Ring::is_ready(std::size_t slot) const {
    return slot < opened_.load(std::memory_order_acquire) &&
           left_[index(slot)].load(std::memory_order_acquire) == 0;
}

bool Ring::can_submit() const {
    if (job_.is_stopped()) return false;
    const std::size_t slot = submitted_.load(std::memory_order_acquire);
    if (fills_) return is_ready(slot);
    return slot < opened_.load(std::memory_order_acquire) ||
           (!job_.has_all_parts() && is_free(slot));
}

// A thread that finds another one submitting goes on: that one looks again.
void Ring::submit_ready() {
    bool held_back = false;
    while (!held_back && can_submit()) {
        const Turn turn(submitting_);
        if (!turn) return;
        while (can_submit() && submit_next(held_back)) {
        }
    }
}

// By one thread at a time. To a GPU, neighbours in the ring are copied by one call: it pauses
// between calls.
bool Ring::submit_next(bool& held_back) {
    const std::size_t first = submitted_.load(std::memory_order_relaxed);
    if (!fills_ && first >= opened_.load(std::memory_order_acquire)) open_slot();
    if (first >= opened_.load(std::memory_order_acquire)) return false;
    std::size_t end = first + 1;
    std::size_t bytes = part_of(first).bytes;
    if (fills_ && job_.division().joins && !resources_.queues.limited()) {
        while (index(end) != 0 && is_ready(end) && part_of(end).at == part_of(end - 1).end()) {
            bytes += part_of(end++).bytes;
        }
    }
    if (!resources_.queues.enter(route_.lane(), bytes)) {
        held_back = true;
        query_oldest();
        return false;
    }
    queued_ += resources_.queues.limited() ? bytes : 0;
    submit(first, end);
    job_.note_submitted(bytes);
    if (job_.all_submitted() && job_.begin_announcement()) {
        announce_submitted(resources_.schedule, job_);
    }
    return true;
}

void Ring::submit(std::size_t first, std::size_t end) {
    const std::size_t at = part_of(first).at;
    // A file may have ended before.
    const std::size_t all = std::min(part_of(end - 1).end(), job_.moved_or_expected());
    const std::size_t call = calls_.load(std::memory_order_relaxed);
    const Submission made{.part = {at, std::max(all, at) - at},
                          .slot = place_of(first, at),
                          .bounce = bounce_of(first),
                          .route = route_,
                          .stream = *stream_,
                          .second = second_,
                          .handover = second_ != nullptr ? handovers_[index(call)].get() : nullptr};
    if (made.part.bytes > 0) job_.submit(made);
    const std::shared_ptr<gpu::Event>& event = events_[index(call)];
    event->record(made.last());
    slots_after_[index(call)] = end;
    last_ = event;
    calls_.store(call + 1, std::memory_order_release);
    submitted_.store(end, std::memory_order_release);
    resources_.schedule.note_progress();
}

// Threads that all ask the driver hold up the one that submits.
void Ring::query_oldest() {
    if (calls_.load(std::memory_order_acquire) <= ended_.load(std::memory_order_acquire)) return;
    std::size_t bytes = 0;
    std::size_t moved = 0;
    {
        const Turn turn(querying_);
        if (!turn) return;
        // Only the thread that asks changes them.
        const std::size_t oldest = ended_.load(std::memory_order_relaxed);
        if (oldest >= calls_.load(std::memory_order_acquire)) return;
        if (!events_[index(oldest)]->done()) return;
        const std::size_t end = slots_after_[index(oldest)];
        for (std::size_t slot = arrived_.load(std::memory_order_relaxed); slot < end; ++slot) {
            bytes += part_of(slot).bytes;
            moved += job_.before_end(part_of(slot));
        }
        if (resources_.queues.limited()) {
            queued_ -= bytes;
            resources_.queues.leave(route_.lane(), bytes);
        }
        resources_.schedule.note_progress();
        ended_.store(oldest + 1, std::memory_order_release);
        arrived_.store(end, std::memory_order_release);
    }
    if (!drains_) job_.note_complete(bytes, moved);
}

}  // namespace waywiser::transfer
