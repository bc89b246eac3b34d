// Limits the bytes that an engine has queued on each copy engine, so that the copies of others get
// their turn.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>

#include "host/spinning_mutex.hpp"
#include "transfer/held_chunk.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the queues and HeldChunk::queued, and is held while events are
// queried; nothing else is locked then. Without a limit nothing is locked at all.
class PoliteQueues {
public:
    // `most_bytes`: on each copy engine; 0: no limit.
    explicit PoliteQueues(std::size_t most_bytes) : most_bytes_(most_bytes) {}

    [[nodiscard]] bool limited() const { return most_bytes_ != 0; }
    // Whether the copy engine of its route accepts the chunk now: it holds at most the limit, or a
    // single larger chunk. Throws gpu::Error of an earlier chunk.
    bool enter(HeldChunk& held);
    // It is in the stream now: other threads may query its event until leave().
    void line_up(HeldChunk& held);
    // Does nothing if it has left already.
    void leave(HeldChunk& held);

private:
    struct Queue {
        std::size_t bytes = 0;
        std::deque<HeldChunk*> chunks;  // in the order of the stream
    };

    const std::size_t most_bytes_;
    host::SpinningMutex mutex_;
    std::map<Lane, Queue> queues_;
};

}  // namespace waywiser::transfer
