// A session measures workloads, one after the other, in one process on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

// When to stop sampling one series in one block (methodology 5).
struct StopRule {
    double target = 0.02;          // half-width of the 95 % interval over the median: enough
    double wanted = 0.01;          // the same: better, worth `soft_seconds` of trying
    std::size_t minimum = 10;      // samples
    std::size_t slow_minimum = 6;  // samples, where one execution takes over slow_seconds
    double slow_seconds = 0.020;
    std::size_t maximum = 2000;
    double minimum_seconds = 0.01;  // of sampling: a shorter look is one moment, not a series
    double soft_seconds = 0.08;     // until then go on to `wanted`, from then `target` is enough
    double hard_seconds = 0.60;     // the budget
};

struct Sample {
    // Seconds of one repetition: by the host, from the release to the last completion; by devices,
    // the longest of any device, from its first start to its last stop.
    double span = 0;
    double host = 0;  // seconds from the first call to completion, one repetition, host clock
    double skew = 0;  // seconds between the first and last start, where it can be seen; else 0
    std::uint32_t repetitions = 1;  // batched into this sample
    std::uint32_t flags = 0;
    std::vector<double> transfers;  // seconds per transfer
};

// Sample flags.
inline constexpr std::uint32_t flag_void = 1;  // the watchdog opened the gate: kept, not counted
inline constexpr std::uint32_t flag_below_resolution = 2;  // interval under 20 times the overhead

struct Request {
    std::vector<Transfer> transfers;
    std::optional<OperationCall> operation;  // then there are no transfers
    Cache cache = Cache::warm;
    bool shared = false;  // transfers that name the same memory on one side use the same buffer
    StopRule rule;
    std::uint64_t seed = 1;
};

struct PlacedBuffer {
    std::string memory;
    Placement placement;
};

struct Outcome {
    TimingMode mode = TimingMode::host;
    std::string stop;  // "converged", "budget", "limit"
    std::vector<Sample> samples;
    std::vector<PlacedBuffer> buffers;  // source, destination of each transfer
    std::string gate;                   // kind, in device mode
    std::vector<std::string> notes;
    double setup_seconds = 0;
    double sampling_seconds = 0;
    std::size_t buffer_bytes = 0;     // held by this workload
    std::size_t pool_peak_bytes = 0;  // held by the session at most so far, idle buffers included
};

// Destination bytes differ from the source: never a number.
class WrongBytes : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
// The path blocks its host behind a closed gate; it has to be timed by the host.
class BlocksBehindGate : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct SessionOptions {
    bool peer_access = true;                // between all GPUs that can
    std::size_t memory_bytes = 4ULL << 30;  // of buffers, host and device together
    double watchdog_seconds = 10;           // a gate closed for longer is opened and voided
    std::vector<Transfer> host_timed;       // reclassified by an earlier watchdog
};

struct Progress {
    std::size_t samples;
    double median, low, high;  // seconds
};

class Session {
public:
    Session(Machine machine, SessionOptions options);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Throws gpu::Error, Refused, WrongBytes, BlocksBehindGate, std::bad_alloc.
    Outcome measure(const Request& request, const std::function<void(const Progress&)>& progress);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waywiser
