// One stream for each copy engine, and one beside each caller's stream that needs it. A GPU that
// switches streams between chunks of 2 MiB loses 3 to 6 us for each of them (measured on H200).
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "gpu/gpu.hpp"
#include "host/spinning_mutex.hpp"
#include "transfer/caller_stream.hpp"
#include "transfer/route.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the streams, and is held while streams are created and queried;
// nothing else is locked then. The streams live as long as this.
class CopyStreams {
    struct Beside;

public:
    // A stream for copies beside a caller's, as long as this lives. It goes to another caller's
    // stream when its last copy is complete.
    class Lease {
    public:
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        [[nodiscard]] const gpu::Stream& operator*() const;
        // It is never used for another caller's stream: a GPU that does not answer has it.
        void keep() { is_kept_ = true; }

    private:
        friend class CopyStreams;
        Lease(CopyStreams& owner, Beside& stream) : owner_(owner), stream_(stream) {}

        CopyStreams& owner_;
        Beside& stream_;
        bool is_kept_ = false;
    };

    // The stream of a copy engine; its first use creates it. Throws gpu::Error.
    gpu::Stream& of(const Lane& lane);
    // snapshot: later work of the caller's stream does not wait for the copies. substitute: it
    // does.
    enum class Use { snapshot, substitute };
    // A stream for copies beside a caller's stream, behind those that were made beside it for the
    // same use. No two callers' streams or uses share one: what holds back the first would hold
    // back the second. Throws gpu::Error.
    Lease beside(int device, const void* callers, Use use);

    // The streams that exist now.
    [[nodiscard]] std::size_t size() const;

private:
    // The handle of a stream, the thread if it is the default stream of one, and the use.
    using Caller = std::tuple<const void*, std::thread::id, Use>;
    struct Beside {
        gpu::Stream stream;
        Caller caller;
        std::size_t leases = 0;
    };

    mutable host::SpinningMutex mutex_;
    std::map<Lane, gpu::Stream> streams_;
    std::map<int, std::list<Beside>> beside_;  // by device
};

}  // namespace waywiser::transfer
