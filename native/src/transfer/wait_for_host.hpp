// Transfers that return when the host's side can be reused: one implementation for copies, lists
// and files.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "transfer/caller_stream.hpp"
#include "transfer/completion.hpp"
#include "transfer/ordering.hpp"

namespace waywiser::transfer {

// Who accesses the host's side of a transfer.
struct HostUse {
    bool cpus = false;  // it is free when run() returns
    bool gpus = false;  // it may be in use after run() and start() have returned
};

// A transfer that was checked. One of its two functions is called, once.
struct CheckedTransfer {
    std::size_t bytes = 0;
    const Ordering& order;
    HostUse host;
    bool to_gpu = false;  // a GPU's memory is a destination
    // Makes it with the calling thread, or records it. Returns what is left of it at the deadline.
    std::function<std::optional<Completion>(const Deadline& deadline)> run;
    std::function<Completion()> start;  // returns at once
};

// What is left of a transfer when a call returns that has waited for the host's side.
struct WaitResult {
    std::optional<Completion> left;  // the transfer, if the time was too short: it goes on
    bool ended = true;               // without a rest: nothing uses the GPU's side any more either
};

// Makes the transfer, and returns when no CPU and no GPU uses the host's side any more; at once if
// it has none. Waits for the stream and for GPUs until the deadline at the latest; the piece that
// the calling thread itself moves then is not cut short. Does not wait while the stream is
// captured. Throws what the transfer failed with; then nothing uses either side any more, unless it
// is MemoryInUse.
WaitResult wait_for_host(const CheckedTransfer& transfer, const Deadline& deadline);
// Waits for a started transfer.
WaitResult wait_for_end(Completion started, const Deadline& deadline);

// A transfer of no bytes that ends when the stream reaches it; nullopt without a GPU or while the
// stream is captured. `bytes`: those that have arrived then.
std::optional<Completion> mark(Engine& engine, const CallerStream& stream, std::size_t bytes = 0);

}  // namespace waywiser::transfer
