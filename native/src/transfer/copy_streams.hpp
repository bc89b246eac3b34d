// One stream for each copy engine: a GPU that switches streams between chunks of 2 MiB loses 3 to 6
// us for each of them (measured on H200).
#pragma once

#include <map>
#include <mutex>

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

private:
    gpu::Stream& stream(const Lane& lane);

    host::SpinningMutex mutex_;
    std::map<Lane, gpu::Stream> streams_;
};

}  // namespace waywiser::transfer
