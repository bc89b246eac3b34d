#include "transfer/chunk_submission.hpp"

#include <utility>

#include "transfer/wait.hpp"

namespace waywiser::transfer {

void ChunkSubmission::settle(Job& job, Chunk& chunk) {
    if (job.is_in_use()) {  // in a stream of its own
        chunk.slot.abandon(Settled::no);
        chunk.bounce.abandon(Settled::no);
        return;
    }
    for (const gpu::Stream* used : {chunk.stream, chunk.second}) {
        if (used == nullptr) continue;
        const Settled now = transfer::settle(*used);
        if (now == Settled::yes) continue;
        if (now == Settled::no) job.keep_in_use();
        chunk.slot.abandon(now);
        chunk.bounce.abandon(now);
        return;
    }
}

void ChunkSubmission::enqueue(HeldChunk& held) {
    const Route& route = held.route();
    Chunk& chunk = held.chunk;
    held.event = events_.take(route.last_device());
    streams_.assign(route, chunk);
    if (chunk.second != nullptr) {
        held.handover = events_.take(route.device);
        chunk.handover = held.handover.get();
    }
    try {
        held.job->submit(chunk);
        held.event->record(chunk.second != nullptr ? *chunk.second : *chunk.stream);
        held.job->add_in_flight(held.event);
    } catch (...) {
        settle(*held.job, chunk);
        throw;
    }
}

bool ChunkSubmission::submit(HeldChunk& held) {
    if (!queues_.enter(held)) return false;
    try {
        enqueue(held);
    } catch (...) {
        queues_.leave(held);
        throw;
    }
    held.submitted = true;
    queues_.line_up(held);
    return true;
}

}  // namespace waywiser::transfer
