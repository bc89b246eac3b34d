// Access of GPUs to each other's memory.
#pragma once

#include <mutex>
#include <set>
#include <utility>

#include "host/spinning_mutex.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the pairs that are enabled, and is held while a pair is enabled.
// The machine must outlive it.
class PeerAccess {
public:
    // `allowed`: false if no GPUs count as peers.
    PeerAccess(const Machine& machine, bool allowed) : machine_(machine), allowed_(allowed) {}

    // Whether both GPUs can access each other's memory, and may. Takes no lock.
    [[nodiscard]] bool are_peers(int one, int other) const;
    // Enables access, for the rest of the process. False if they are no peers. Throws gpu::Error.
    bool enable(int one, int other);

private:
    const Machine& machine_;
    const bool allowed_;
    host::SpinningMutex mutex_;
    std::set<std::pair<int, int>> enabled_;
};

}  // namespace waywiser::transfer
