// The engine of a session: its staging memory and the buffers of each workload keep within one
// bound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

#include "transfer/engine.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

class BoundedEngine {
public:
    BoundedEngine(const Machine& machine, std::size_t limit_bytes, bool peer_access)
        : machine_(machine), limit_(limit_bytes), peer_access_(peer_access) {}

    // The engine for a workload whose buffers take so many bytes. It is that of the workload
    // before, with its threads and staging memory, if they are enough and leave room for the
    // buffers; else a new one, and the memory of the former has been freed.
    transfer::Engine& prepare(const Request& request, std::size_t buffer_bytes);

    // What its staging memory can take and what the workload requires, whichever is more: on the
    // host and on all GPUs together.
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
    std::optional<transfer::Engine> engine_;
};

}  // namespace waywiser::measure
