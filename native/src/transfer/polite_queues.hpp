// Limits the bytes that an engine has queued on each copy engine, so that the copies of others get
// their turn.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "host/spinning_mutex.hpp"
#include "transfer/route.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the numbers of bytes; nothing else is locked then. Without a limit
// nothing is locked at all.
class PoliteQueues {
public:
    // `most_bytes`: on each copy engine; 0: no limit.
    explicit PoliteQueues(std::size_t most_bytes) : most_bytes_(most_bytes) {}

    [[nodiscard]] bool limited() const { return most_bytes_ != 0; }
    // Whether the copy engine accepts so many bytes now: it holds at most the limit, or a single
    // larger copy.
    [[nodiscard]] bool enter(const Lane& lane, std::size_t bytes) {
        if (!limited()) return true;
        const std::lock_guard lock(mutex_);
        std::size_t& queued = queued_[lane];
        if (queued != 0 && queued + bytes > most_bytes_) return false;
        queued += bytes;
        return true;
    }
    // So many bytes are not in flight any more.
    void leave(const Lane& lane, std::size_t bytes) {
        if (!limited() || bytes == 0) return;
        const std::lock_guard lock(mutex_);
        queued_[lane] -= bytes;
    }

private:
    const std::size_t most_bytes_;
    host::SpinningMutex mutex_;
    std::map<Lane, std::size_t> queued_;
};

}  // namespace waywiser::transfer
