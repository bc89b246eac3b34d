// Transfers that return when the host's side can be reused: one implementation for copies, lists
// and files.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "transfer/caller_stream.hpp"
#include "transfer/ordering.hpp"
#include "transfer/started.hpp"

namespace waywiser::transfer {

// A transfer that was checked. One of its two functions is called, once.
struct CheckedTransfer {
    std::size_t bytes = 0;
    const Ordering& order;
    bool cpus_use_host =
        false;  // CPUs read or write the host's side; it is free when run() returns
    bool gpus_use_host = false;      // GPUs do, after run() and start() return
    std::function<void()> run;       // makes it with the calling thread, or records it
    std::function<Started()> start;  // returns at once
};

// Makes the transfer, and returns when no CPU and no GPU uses the host's side any more; at once if it
// has none. Waits for the stream and for GPUs at most `seconds` in all (negative: without limit);
// what the calling thread itself moves is not counted. Returns the rest of the transfer if the time
// was too short: it goes on. Does not wait while the stream is captured. Throws what the transfer
// failed with; then nothing uses either side any more.
std::optional<Started> wait_for_host(const CheckedTransfer& transfer, const CallerStream& stream,
                                     double seconds);

// A transfer of no bytes that ends when the stream reaches it; nullopt without a GPU or while the
// stream is captured. `bytes`: those that have arrived then.
std::optional<Started> mark(Engine& engine, const CallerStream& stream, std::size_t bytes = 0);

}  // namespace waywiser::transfer
