// Puts filled chunks into the streams of their copy engines, each on its own.
#pragma once

#include <cstddef>

#include "transfer/copy_streams.hpp"
#include "transfer/event_pool.hpp"
#include "transfer/held_chunk.hpp"
#include "transfer/polite_queues.hpp"

namespace waywiser::transfer {

// Thread safe: has no lock of its own, and calls the pools and the job without one held. The pools
// must outlive it.
class ChunkSubmission {
public:
    // `max_queued_bytes`: limit of bytes queued on each copy engine; 0: none.
    ChunkSubmission(const EventPool& events, CopyStreams& streams, std::size_t max_queued_bytes)
        : events_(events), streams_(streams), queues_(max_queued_bytes) {}

    // Whether chunks are counted one by one, so that they cannot be submitted together.
    [[nodiscard]] bool one_by_one() const { return queues_.limited(); }
    // Submits a filled chunk. False if its copy engine has enough work. Throws what fails; then
    // HeldChunk::submitted says whether it is in flight nevertheless.
    bool submit(HeldChunk& held);
    // A submitted chunk is not in flight any more.
    void leave(HeldChunk& held) { queues_.leave(held); }
    // After a failure: waits until no GPU uses the chunk's staging, which is not used again if the
    // context is lost or the GPU does not answer.
    static void settle(Job& job, Chunk& chunk);

private:
    void enqueue(HeldChunk& held);

    const EventPool& events_;
    CopyStreams& streams_;
    PoliteQueues queues_;
};

}  // namespace waywiser::transfer
