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
    // Seconds of a small copy from it to each GPU of the machine, in their order; nothing where
    // the session was not told to look, or where it says nothing.
    std::vector<double> gpu_seconds;
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

// Where several blocks of one memory are, by what it costs GPUs and CPUs to reach them.
struct LocalityRequest {
    Memory memory;
    std::size_t blocks = 6;  // allocated one by one, held all at once
    std::size_t bytes = std::size_t{16} << 20;
    std::size_t rounds = 8;  // of small copies, each from another piece of the block
    std::vector<int> cpus;   // those that read
    std::size_t sweeps = 4;  // of reads by all of them
    double pause = 0.04;     // seconds between two sweeps, in which virtual CPUs may move
};
struct BlockLocality {
    Placement placement;
    std::vector<std::vector<double>> copies;  // seconds of one copy: [round][GPU]
    std::vector<std::vector<double>> reads;   // seconds of one load: [sweep][CPU]
};
struct LocalityOutcome {
    std::vector<int> gpus;
    std::vector<int> cpus;
    std::vector<double> sweeps;  // seconds from the start to each sweep
    std::vector<BlockLocality> blocks;
    double seconds = 0;
};

// Called with 0 right before, and with their number right after, executions that move bytes for
// nothing but to be watched: counters of links are read around them.
using Evidence = std::function<void(std::size_t executions)>;

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
    bool sides = false;                     // tell of each page-locked buffer how far GPUs have it
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
    Outcome measure(const Request& request, const std::function<void(const Progress&)>& progress,
                    const Evidence& evidence = nullptr);
    LocalityOutcome locality(const LocalityRequest& request);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waywiser
