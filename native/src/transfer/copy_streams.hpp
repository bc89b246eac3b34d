// One stream for each copy engine, and one beside each caller's stream that needs it. A GPU that
// switches streams between chunks of 2 MiB loses 3 to 6 us for each of them (measured on H200).
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "gpu/gpu.hpp"
#include "host/spinning_mutex.hpp"
#include "transfer/chunk.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the map; streams are created with it held, and nothing else is
// locked then. The streams live as long as this.
class CopyStreams {
public:
    // Gives a chunk the streams of its route; their first use creates them. Throws gpu::Error.
    void assign(const Route& route, Chunk& chunk);
    // The stream of a copy engine.
    gpu::Stream& of(const Lane& lane);
    // The stream for copies beside a caller's stream, whose handle is only a key. No two callers'
    // streams share one: what holds back the first would hold back the second.
    gpu::Stream& beside(int device, const void* callers);

private:
    host::SpinningMutex mutex_;
    std::map<Lane, gpu::Stream> streams_;
    std::map<std::pair<int, const void*>, gpu::Stream> beside_;
};

}  // namespace waywiser::transfer
