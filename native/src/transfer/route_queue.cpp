#include "transfer/route_queue.hpp"

#include <algorithm>

#include "transfer/copy_streams.hpp"
#include "transfer/event_pool.hpp"
#include "transfer/job.hpp"
#include "transfer/job_end.hpp"
#include "transfer/polite_queues.hpp"
#include "transfer/schedule.hpp"
#include "transfer/staging_pools.hpp"

namespace waywiser::transfer {
namespace {

// Maximum of a call for several rings, and bytes in flight from which on their slots wait for the
// next call. The link always has another call then.
constexpr std::size_t kMostTogether = std::size_t{4} << 20;
constexpr std::size_t kBytesAhead = std::size_t{8} << 20;

}  // namespace

RouteQueue::RouteQueue(Job& job, const Route& route, const RingResources& resources)
    : job_(job), route_(route), resources_(resources) {}

void RouteQueue::add(Ring& ring, std::size_t slots) {
    rings_.push_back(&ring);
    in_flight_.resize(std::max<std::size_t>(in_flight_.size(), 1) + slots);
}

// A job that has ended may outlive its engine.
Settled RouteQueue::clear(bool failed) noexcept {
    if (cleared_) return *cleared_;
    Settled settled = job_.is_in_use() ? Settled::no : Settled::yes;
    for (const gpu::Stream* used : {stream_, second_}) {
        if (used == nullptr || !failed || settled == Settled::no) continue;
        const Settled now = settle(*used);
        if (now != Settled::yes) settled = now;
    }
    stream_ = nullptr;
    second_ = nullptr;
    resources_.queues.leave(route_.lane(), queued_.exchange(0));
    for (Call& one : in_flight_) {
        one.event.reset();
        one.handover.reset();
    }
    cleared_ = settled;
    return settled;
}

void RouteQueue::open() {
    if (stream_ != nullptr) return;
    if (route_.second_device >= 0) second_ = &resources_.streams.of(route_.second_lane());
    stream_ = &resources_.streams.of(route_.lane());
}

bool RouteQueue::can_submit() const {
    return std::ranges::any_of(rings_, [](const Ring* ring) { return ring->can_submit(); });
}

// A thread that finds another one submitting goes on: that one looks again.
void RouteQueue::submit_ready() {
    bool held_back = false;
    while (!held_back && can_submit()) {
        const Turn turn(submitting_);
        if (!turn) return;
        while (can_submit() && submit_next(held_back)) {
        }
    }
}

void RouteQueue::submit_first() {
    bool held_back = false;
    static_cast<void>(submit_next(held_back));
}

// With several rings, more slots will be ready before the GPU has ended what it has.
bool RouteQueue::has_enough() const {
    return holds_back() && queued_ >= kBytesAhead && calls_ - ended_ > 1 && !job_.has_all_parts();
}

bool RouteQueue::submit_next(bool& held_back) {
    if (has_enough()) {
        query_oldest();
        held_back = has_enough();
        if (held_back) return false;
    }
    Call& next = call(calls_.load(std::memory_order_relaxed));
    take_ready(next);
    if (next.runs.empty()) return false;
    if (!resources_.queues.enter(route_.lane(), next.bytes)) {
        held_back = true;
        query_oldest();
        return false;
    }
    queued_ += next.bytes;
    submit(next);
    job_.note_submitted(next.bytes);
    if (job_.all_submitted() && job_.begin_announcement()) {
        announce_submitted(resources_.schedule, job_);
    }
    return true;
}

// Relays take one slot at a time: each of their two copies has its own stream.
void RouteQueue::take_ready(Call& call) {
    call.runs.clear();
    call.bytes = 0;
    // The runtime may reject memory that is not pinned in a call for several copies.
    const bool is_single = resources_.queues.limited() || route_.second_device >= 0 ||
                           resources_.staging.is_unpinned();
    const std::size_t first = turn_;
    for (std::size_t i = 0; i < rings_.size(); ++i) {
        const std::size_t number = (first + i) % rings_.size();
        const Ring::Run run = rings_[number]->next_run(!resources_.queues.limited());
        if (run.bytes == 0) continue;
        if (!call.runs.empty() && call.bytes + run.bytes > kMostTogether) break;
        call.runs.push_back(run);
        call.bytes += run.bytes;
        turn_ = number + 1;
        if (is_single) break;
    }
}

void RouteQueue::submit(Call& call) {
    open();
    if (!call.event) call.event = resources_.events.take(route_.last_device());
    if (second_ != nullptr && !call.handover) {
        call.handover = resources_.events.take(route_.device);
    }
    together_.clear();
    for (const Ring::Run& run : call.runs) {
        Submission made = run.ring->submission(run);
        if (made.part.bytes == 0) continue;
        made.route = &route_;
        made.stream = stream_;
        made.second = second_;
        made.handover = call.handover.get();
        together_.push_back(made);
    }
    if (!together_.empty()) job_.submit(together_);
    call.event->record(second_ != nullptr ? *second_ : *stream_);
    last_ = call.event;
    calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    for (const Ring::Run& run : call.runs) run.ring->note_submitted(run);
    resources_.schedule.note_progress();
}

void RouteQueue::query_oldest() {
    if (calls_.load(std::memory_order_acquire) <= ended_.load(std::memory_order_acquire)) return;
    std::size_t bytes = 0;
    std::size_t moved = 0;
    {
        const Turn turn(querying_);
        if (!turn) return;
        // Only the thread that asks changes them.
        const std::size_t oldest = ended_.load(std::memory_order_relaxed);
        if (oldest >= calls_.load(std::memory_order_acquire)) return;
        const Call& ending = call(oldest);
        if (!ending.event->done()) return;
        bytes = ending.bytes;
        queued_ -= bytes;
        resources_.queues.leave(route_.lane(), bytes);
        resources_.schedule.note_progress();
        // Their slots may be submitted again from then on, by another call.
        for (const Ring::Run& run : ending.runs) moved += run.ring->note_arrived(run);
        ended_.store(oldest + 1, std::memory_order_release);
    }
    if (!job_.drains()) job_.note_complete(bytes, moved);
}

}  // namespace waywiser::transfer
