// The limits of an engine: threads, memory, GPUs.
#pragma once

#include <cstddef>
#include <vector>

#include "transfer/log_thread.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

struct EngineOptions {
    std::size_t threads = 0;           // 0: thread_limit()
    std::size_t pinned_bytes = 0;      // 0: 16 MiB for each thread; capped by pinned_limit()
    std::vector<int> relays;           // GPUs whose links may be used too, in this order
    std::size_t relay_bytes = 0;       // staging memory on each of them; 0: 64 MiB
    std::size_t max_queued_bytes = 0;  // limit of bytes queued on a copy engine; 0: none
    // For a list of short pieces over a GPU's link. 0: what the policy says, two without.
    unsigned list_multiprocessors = 0;
    // After a copy, its threads spin for so long before they sleep; 0: not at all.
    double spin_seconds = 0;
    bool plain = false;            // only plain copies of the runtime
    bool peer_access = true;       // may enable peer access between the GPUs of a copy
    bool report_warnings = false;  // writes each warning to stderr, once per process
    LogFunction log;               // gets the warnings instead
    std::vector<int> cpus;         // of its threads; empty: those that the machine's nodes have
    bool own_cpus = false;         // other ranks of the node have others
    // stop() gives up transfers if no GPU completes anything for so long.
    double unresponsive_seconds = kUnresponsiveSeconds;
};

// The options with a value for each limit that is 0, within the limits of the process.
EngineOptions completed(EngineOptions options);

// Smaller copies are faster by the runtime alone: waking threads takes longer than they gain
// (measured on H200 with 16 CPUs, docs/transfer.md).
inline constexpr std::size_t kPlainBelow = std::size_t{8} << 20;
// The same of threads that are awake (measured on H100 with 16 CPUs,
// docs/results/2026-11-27-awake).
inline constexpr std::size_t kPlainBelowAwake = std::size_t{1} << 20;
// Without a policy, smaller copies of pageable memory are plain.
std::size_t least_chunked(const EngineOptions& options);

// Of the pinned memory of completed options, bytes for tables of lists; 0 if the total is too
// small.
std::size_t list_table_bytes(const EngineOptions& options);

}  // namespace waywiser::transfer
