// The engine of a session. Its staging memory and the buffers of each workload together stay within
// one limit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>

#include "transfer/engine.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

class BoundedEngine {
public:
    BoundedEngine(const Machine& machine, std::size_t limit_bytes, bool peer_access)
        : machine_(machine), limit_(limit_bytes), peer_access_(peer_access) {}

    // The engine for a workload whose buffers take `buffer_bytes`. Reuses the previous engine, with
    // its threads and staging memory, if that is enough and leaves space for the buffers; else
    // frees it and makes a new one.
    transfer::Engine& prepare(const Request& request, std::size_t buffer_bytes);

    // The larger of its staging budget and the workload's requirements, on the host and on all GPUs
    // together.
    [[nodiscard]] std::size_t staging_bytes() const { return std::max(required_, budget_.total()); }

private:
    struct Budget {
        std::size_t pinned = 0;
        std::size_t relay = 0;  // on each relay
        std::set<int> relays;
        [[nodiscard]] std::size_t of_relays() const { return relay * relays.size(); }
        [[nodiscard]] std::size_t total() const { return pinned + of_relays(); }
    };
    [[nodiscard]] Budget needs(const Request& request) const;

    const Machine& machine_;
    const std::size_t limit_;
    const bool peer_access_;
    std::size_t required_ = 0;
    Budget budget_;
    std::shared_ptr<transfer::Engine> engine_;
};

}  // namespace waywiser::measure
