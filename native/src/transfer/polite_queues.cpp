#include "transfer/polite_queues.hpp"

namespace waywiser::transfer {

// Chunks on one stream end in order, so that any thread can detect which have ended even if their
// own threads are busy.
bool PoliteQueues::enter(HeldChunk& held) {
    if (!limited()) return true;
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[held.route().lane()];
    while (!queue.chunks.empty() && queue.chunks.front()->event->done()) {
        queue.chunks.front()->queued = false;
        queue.bytes -= queue.chunks.front()->chunk.claimed;
        queue.chunks.pop_front();
    }
    if (queue.bytes != 0 && queue.bytes + held.chunk.claimed > most_bytes_) return false;
    queue.bytes += held.chunk.claimed;
    held.queued = true;
    return true;
}

void PoliteQueues::line_up(HeldChunk& held) {
    if (!limited()) return;
    const std::lock_guard lock(mutex_);
    queues_[held.route().lane()].chunks.push_back(&held);
}

void PoliteQueues::leave(HeldChunk& held) {
    if (!limited()) return;
    const std::lock_guard lock(mutex_);
    if (!held.queued) return;
    Queue& queue = queues_[held.route().lane()];
    std::erase(queue.chunks, &held);
    queue.bytes -= held.chunk.claimed;
    held.queued = false;
}

}  // namespace waywiser::transfer
