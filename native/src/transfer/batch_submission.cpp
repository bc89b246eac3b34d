#include "transfer/batch_submission.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "transfer/job_end.hpp"

namespace waywiser::transfer {
namespace {

// Limits of bytes in a batch of gathered chunks, and of bytes in flight before the next batch: the
// link always has the next batch, and chunks that become ready meanwhile are gathered.
constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
constexpr std::size_t kBytesAhead = std::size_t{8} << 20;

std::size_t ready_chunks(RouteBatches& own) {
    const std::lock_guard lock(own.mutex);
    return own.ready.size();
}

}  // namespace

void BatchSubmission::add(HeldChunk& held) {
    Job& job = *held.job;
    RouteBatches& own = job.batches(held.chunk.route);
    {
        const std::lock_guard lock(own.mutex);
        own.ready.push_back(&held.chunk);
    }
    submit_ready(job, held.chunk.route);
}

// Submits the ready chunks of the route, unless another thread does so: that one, or an owner of a
// chunk, checks again.
void BatchSubmission::submit_ready(Job& job, std::size_t route) {
    RouteBatches& own = job.batches(route);
    std::size_t seen = 0;
    do {
        const std::unique_lock turn(own.submitting, std::try_to_lock);
        if (!turn) return;
        do {
            end_batches(job, route);
        } while (submit_batch(job, route, seen));
    } while (ready_chunks(own) > seen);  // added while this thread was submitting
}

// With `submitting` held: marks the batches that have ended, for the owners of their chunks.
void BatchSubmission::end_batches(Job& job, std::size_t route) {
    auto& batches = job.batches(route).in_flight;
    while (!batches.empty()) {
        const std::shared_ptr<Batch> oldest = batches.front();
        try {
            if (!oldest->event->done()) return;
        } catch (...) {
            job.fail(std::current_exception());
            oldest->failed = true;
        }
        batches.pop_front();
        job.remove_in_flight(oldest->event);
        oldest->event.reset();
        oldest->handover.reset();
        oldest->ended = true;
    }
}

// With `submitting` held: whether what is in flight keeps the link busy until more is gathered.
bool BatchSubmission::has_enough(const Job& job, const RouteBatches& own) const {
    std::size_t ahead = 0;
    for (const auto& batch : own.in_flight) ahead += batch->bytes;
    return ahead >= kBytesAhead && own.in_flight.size() > 1 && !schedule_.exhausted(job);
}

// Takes the chunks of the next batch. `left`: number of those that stay ready.
std::vector<Chunk*> BatchSubmission::take_ready(RouteBatches& own, Batch& batch,
                                                std::size_t& left) const {
    // The runtime may reject memory that is not pinned in a batch.
    const std::size_t most = staging_.unpinned() ? 0 : kBatchBytes;
    const std::lock_guard lock(own.mutex);
    std::size_t count = 0;
    for (; count < own.ready.size(); ++count) {
        const std::size_t bytes = own.ready[count]->bytes;
        if (count > 0 && batch.bytes + bytes > most) break;
        batch.bytes += bytes;
    }
    const auto end = own.ready.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Chunk*> chunks(own.ready.begin(), end);
    own.ready.erase(own.ready.begin(), end);
    left = own.ready.size();
    return chunks;
}

void BatchSubmission::enqueue(Job& job, const Route& route, const std::vector<Chunk*>& chunks,
                              Batch& batch) {
    Chunk& first = *chunks.front();
    try {
        batch.event = events_.take(route.last_device());
        if (first.second != nullptr) {
            batch.handover = events_.take(route.device);
            first.handover = batch.handover.get();
        }
        job.submit_together(chunks);
        batch.event->record(first.second != nullptr ? *first.second : *first.stream);
    } catch (...) {
        job.fail(std::current_exception());
        batch.failed = true;
    }
}

// With `submitting` held: submits the next batch. False if there is none, or enough in flight.
// `left`: number of chunks that were ready and stay so.
bool BatchSubmission::submit_batch(Job& job, std::size_t route, std::size_t& left) {
    RouteBatches& own = job.batches(route);
    left = ready_chunks(own);
    if (left == 0) return false;
    const bool failed = job.failed();
    if (!failed && has_enough(job, own)) return false;
    const auto batch = std::make_shared<Batch>();
    const std::vector<Chunk*> chunks = take_ready(own, *batch, left);
    batch->failed = failed;
    if (!failed) enqueue(job, job.routes()[route], chunks, *batch);
    batch->ended = batch->failed;
    if (!batch->failed) {
        own.in_flight.push_back(batch);
        job.add_in_flight(batch->event);
    }
    {
        const std::lock_guard lock(own.mutex);
        for (Chunk* chunk : chunks) chunk->batch = batch;  // their owners may end them from now on
    }
    if (schedule_.submitted(job, chunks.size())) announce_submitted(schedule_, job);
    return true;
}

bool BatchSubmission::ended(HeldChunk& held, bool& arrived) {
    RouteBatches& own = held.job->batches(held.chunk.route);
    const auto batch = [&] {
        const std::lock_guard lock(own.mutex);
        return held.chunk.batch;
    };
    auto known = batch();
    if (!known || !known->ended) {
        submit_ready(*held.job, held.chunk.route);
        known = batch();
        if (!known || !known->ended) return false;
    }
    arrived = !known->failed;
    return true;
}

}  // namespace waywiser::transfer
