// A session measures workloads one after another in one process.
//
// Ownership: a session owns the buffers, streams, gates and threads that it measures with, and
// reuses them; its destructor ends and frees them. Requests and options are read during a call
// only; outcomes are values of the caller. Thread safety: one thread at a time uses a session, and
// calls back in that thread. Ordering: a call returns when all work that it started has completed.
// Units: seconds and bytes; devices, NUMA nodes and CPUs by number.
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

namespace ranks {
class Messenger;
}

// When to stop sampling one series in one block (methodology 5).
struct StopRule {
    double target = 0.02;          // relative half-width of the 95 % interval after soft_seconds
    double wanted = 0.01;          // relative half-width before soft_seconds
    std::size_t minimum = 10;      // samples
    std::size_t slow_minimum = 6;  // samples if one execution takes longer than slow_seconds
    double slow_seconds = 0.020;
    std::size_t maximum = 2000;     // samples
    double minimum_seconds = 0.01;  // of sampling
    double soft_seconds = 0.08;     // aim at `wanted` until then, at `target` afterwards
    double hard_seconds = 0.60;     // stop then in any case
};

struct Sample {
    // Seconds of one repetition. With host timing, from the release to the last completion; with
    // device timing, the longest of any device, from its first start to its last stop.
    double span = 0;
    double host = 0;  // host-clock seconds of one repetition, from the first call to completion
    double skew = 0;  // seconds between the first and last start; 0 if unknown
    std::uint32_t repetitions = 1;  // batched into this sample
    std::uint32_t flags = 0;
    std::vector<double> transfers;  // seconds per transfer
    // With device timing, if a transfer has several lanes: seconds of each lane of each transfer;
    // between ranks, if several take part in one, of each of these. A transfer's own time is that
    // of its slowest. In a sustained workload the devices time the lanes, and the host times the
    // transfer.
    std::vector<std::vector<double>> lanes;
    // Seconds of each transfer of a sustained workload without the others, in turn with the
    // sample.
    std::vector<double> alone;
};

// Sample flags.
inline constexpr std::uint32_t flag_void = 1;  // not counted: the watchdog opened the gate
inline constexpr std::uint32_t flag_below_resolution = 2;  // interval under 20 times the overhead

struct Request {
    std::vector<Transfer> transfers;
    std::optional<OperationCall> operation;  // instead of transfers
    Cache cache = Cache::warm;
    bool shared = false;  // transfers with the same memory on one side use the same buffer
    StopRule rule;
    std::uint64_t seed = 1;

    // Whether each transfer is timed while the others run throughout, and alone in turn: if a
    // collective is among several transfers. Shorter ones repeat until the longest is done.
    [[nodiscard]] bool sustained() const;
};

struct PlacedBuffer {
    std::string memory;
    Placement placement;
    // Seconds of a small copy from it to each GPU of the machine, in their order. Empty unless
    // SessionOptions::sides is set and the memory is page-locked.
    std::vector<double> gpu_seconds;
};

struct Outcome {
    TimingMode mode = TimingMode::host;
    std::string stop;  // "converged", "budget", "limit"
    std::vector<Sample> samples;
    std::vector<PlacedBuffer> buffers;  // source, destination of each transfer
    std::string gate;                   // kind of gate, with device timing
    std::vector<std::string> notes;
    double setup_seconds = 0;
    double sampling_seconds = 0;
    std::size_t buffer_bytes = 0;     // of this workload
    std::size_t pool_peak_bytes = 0;  // peak of the session so far, including idle buffers
};

// Locates several blocks of one memory by the time that GPUs and CPUs take to reach them.
struct LocalityRequest {
    Memory memory;
    std::size_t blocks = 6;  // allocated one by one and held together
    std::size_t bytes = std::size_t{16} << 20;
    std::size_t rounds = 8;  // rounds of small copies, each from another piece of the block
    std::vector<int> cpus;   // CPUs that read
    std::size_t sweeps = 4;  // rounds of reads by all of these CPUs
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

// Whether work ended while a kernel occupied all multiprocessors of the GPUs at its ends. What
// ended was done without them, by copy engines or other fixed hardware.
enum class WhileOccupied { undecided, ended, waited };
struct Observation {
    WhileOccupied found = WhileOccupied::undecided;
    std::string reason;        // why it is not decided, in one line
    double alone_seconds = 0;  // from the call to completion, without the kernel
    double held_seconds = 0;   // from the call until it ended, or until the kernel did
    double after_seconds = 0;  // from the end of the kernel to completion, if it waited
};
// Who copies: observes transfers with the GPU at an end.
struct WhoCopiesRequest {
    int gpu = 0;
    std::vector<Transfer> transfers;
};
struct WhoCopiesOutcome {
    Observation kernel;  // of a kernel, which must wait
    Observation fill;
    std::vector<Observation> copies;  // of each transfer
    double seconds = 0;
};

// Called with 0 right before, and with their number right after, extra executions around which link
// counters are read.
using Evidence = std::function<void(std::size_t executions)>;

// Destination bytes differ from the source: the workload has no result.
class WrongBytes : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
// The path blocks its host behind a closed gate; it has to be timed by the host.
class BlocksBehindGate : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A workload between ranks came to nothing for what another rank says; what() is that rank.
class OtherRankFailed : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct SessionOptions {
    bool peer_access = true;                // between all GPUs that support it
    std::size_t memory_bytes = 4ULL << 30;  // limit for buffers, host and device together
    double watchdog_seconds = 10;           // a gate closed for longer is opened, its sample void
    std::vector<Transfer> host_timed;       // transfers that blocked behind a gate before
    bool sides = false;                     // fill PlacedBuffer::gpu_seconds
    // The messenger of this process, which is a rank; outlives the session. Needed between ranks.
    ranks::Messenger* messenger = nullptr;
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

    // Makes contexts on these devices, so that no workload waits for them. Throws gpu::Error.
    void open(const std::vector<int>& gpus);
    // Calls `progress`, and `evidence` if it is not empty, in the calling thread; what they throw
    // ends the measurement. Throws gpu::Error, NotSupported, WrongBytes, BlocksBehindGate,
    // std::bad_alloc.
    // Between ranks, all ranks at the ends of the transfers call it with the same request. The
    // outcome of the lowest has the samples. The others' have their buffers only; they are returned
    // without delay for ranks whose transfers do without them. Throws also
    // ranks::MessengerError, after which no message can be exchanged any more, and OtherRankFailed.
    Outcome measure(const Request& request, const std::function<void(const Progress&)>& progress,
                    const Evidence& evidence = nullptr);
    // Throws gpu::Error, NotSupported, std::bad_alloc.
    LocalityOutcome locality(const LocalityRequest& request);
    // The occupations last for tens of milliseconds, of one transfer less than 0.2 s together.
    // Throws gpu::Error, std::bad_alloc.
    WhoCopiesOutcome who_copies(const WhoCopiesRequest& request);
    // Returns the transfer that has run longest in a sustained workload that is being measured, and
    // for how long; empty for others. Any thread may call it.
    [[nodiscard]] std::string underway() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waywiser
