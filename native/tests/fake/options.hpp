// The parsed configuration of the fake: see the table in fake.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace waywiser::fake {

enum class Point { copy, fill, launch, event, alloc, sync, call, query };
inline constexpr std::size_t kPoints = 8;

// Selects counted events: the n-th, all from the n-th on, or every n-th.
struct When {
    enum class Kind { at, from, every };
    Kind kind = Kind::at;
    std::size_t number = 1;

    [[nodiscard]] bool matches(std::size_t count) const;
};

struct Strike {
    Point point = Point::copy;
    When when;
};

enum class GateFault { none, first_open_lost, stuck };

struct Options {
    int devices = 2;
    std::size_t memory_bytes = std::size_t{16} << 30;
    std::string unavailable;
    bool pageable_access = false;
    bool no_peers = false;
    std::vector<std::pair<int, int>> apart;    // pairs without peer access
    std::set<std::string> without;             // any of batch, pool, vmm, ipc
    std::set<std::string> by_multiprocessors;  // any of h2d, d2h, local, peer, fill
    bool occupied = true;

    // Slower than any GPU, so that the real memcpy does not dominate the simulated time.
    double h2d_gb_per_s = 4;
    double d2h_gb_per_s = 3.5;
    double d2d_gb_per_s = 6;
    double peer_gb_per_s = 5;
    double staged_gb_per_s = 2;
    double latency_seconds = 2e-6;
    double remote_seconds = 0;
    std::size_t remote_seed = 1;
    double event_seconds = 0.5e-6;
    double piece_seconds = 0.2e-6;

    std::optional<Strike> out_of_memory, fail, sticky, lost, hang, crash, delay, flip, drop, block;
    double delay_seconds = 0;
    GateFault gate = GateFault::none;
    std::optional<std::size_t> only_bytes;
    std::string once_file;

    [[nodiscard]] bool peers(int from, int to) const;
    // The half of the machine (0 or 1) with a GPU, or with the n-th block of page-locked memory.
    [[nodiscard]] int half_of_device(int device) const;
    [[nodiscard]] int half_of_block(std::size_t n) const;
};

// Throws std::invalid_argument with one line that names the key.
Options parse_options(const std::string& text);

}  // namespace waywiser::fake
