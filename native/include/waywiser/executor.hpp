// An executor moves the bytes of a transfer. Each is one file in src/executor/; everything else
// (planning, timing, verification, storage, analysis) finds it in the registry.
//
// It works on views and never owns the user's buffers, so a program can call the same object that
// the survey measures.
//
// Ownership: the registry owns executors until the process ends. A caller owns each Execution, and
// what it passes to prepare(): streams, engine, buffers outlive the Execution. Transfer and Machine
// are read during a call only.
// Thread safety: an Executor is constant, and any thread may call it. An Execution is used by one
// thread at a time.
// Ordering: calls of one Execution are restore(), wake(), start(), and finish() with host timing;
// what start() enqueues is ordered in the lanes and in nothing else.
// Units: bytes; devices, NUMA nodes and CPUs by number.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/arrangement.hpp"
#include "waywiser/registry.hpp"
#include "waywiser/traits.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

namespace gpu {
class Stream;
}
namespace transfer {
class Engine;
}
namespace ranks {
class Messenger;
}

// One side of a transfer, not owned.
struct View {
    std::byte* data = nullptr;
    std::size_t bytes = 0;  // to move, without the gaps of the arrangement
    const Memory* memory = nullptr;
    const Arrangement* arrangement = nullptr;  // relative to `data`; nullptr: contiguous
    int file = -1;                             // descriptor if the memory is a file
    std::size_t offset = 0;  // of the first byte in the file, or in each of several buffers
    // If the memory is at several places: the buffer at each; `data` is nullptr.
    std::byte* const* each = nullptr;
};

// What a transfer among several memories makes of their bytes.
struct Exchange {
    // A number that is summed: of 32 bits, modulo 2^32; or a float of a whole number below 65536,
    // so that sums are exact in any order.
    enum class Element { int32, whole_float32 };
    // Bytes that arrive at a destination: those of one source, or the sums of all sources.
    struct Arrival {
        std::size_t destination = 0;        // number of the memory at the end
        std::size_t to = 0;                 // offset there
        std::optional<std::size_t> source;  // number of the memory; none for sums
        std::size_t from = 0;               // offset in the source, or in all of them
        std::size_t bytes = 0;
    };
    Element element = Element::int32;
    std::size_t source_bytes = 0;       // that it reads of each source
    std::size_t destination_bytes = 0;  // that it writes of each destination
    std::vector<Arrival> arrivals;      // all bytes of the destinations, once
};

// A prepared transfer: persistent resources (threads, rings) that every start reuses.
class Execution {
public:
    virtual ~Execution() = default;
    // Restores the state that both sides had before a start, and returns when that is done. Most
    // executors need nothing. Called for every piece of the buffers that repetitions use.
    virtual void restore(const View& /*source*/, const View& /*destination*/) {}
    // Called right before a timed start: wakes threads that sleep between starts, moves no bytes.
    virtual void wake() {}
    // With device timing: enqueues on the lanes and returns. With host timing: may block until
    // done. Both views and their memory stay valid until the work has ended.
    virtual void start(const View& source, const View& destination) = 0;
    // The most entries that a start puts on one lane: a closed gate holds a limited number.
    [[nodiscard]] virtual std::size_t entries() const { return 1; }
    // With host timing: returns when every byte has arrived at the destination.
    virtual void finish() {}
    // Between ranks: how often a start moves the bytes from one end to the other, one after
    // another. The time of a start is divided by it.
    [[nodiscard]] virtual std::size_t crossings() const { return 1; }
    // The starts that are in flight together: a sample has at least as many.
    [[nodiscard]] virtual std::size_t window() const { return 1; }
};

// What a transfer uses in addition to the memory of its two sides. Memory limits, plans and the
// evidence from link counters use it.
struct Requirements {
    std::size_t threads = 0;                  // CPU threads that move bytes
    std::size_t pinned_bytes = 0;             // staging on the host
    std::map<int, std::size_t> device_bytes;  // staging on each GPU
    std::vector<std::pair<int, int>> peers;   // GPUs that access each other's memory
    std::vector<int> host_links;              // GPUs whose links to the host carry bytes
    bool operator==(const Requirements&) const = default;
};

class Executor {
public:
    virtual ~Executor() = default;
    [[nodiscard]] virtual const Info& info() const = 0;
    // What planning, statistics and reports need to know about it.
    [[nodiscard]] virtual Traits traits() const { return {}; }

    // Whether it supports the layout on the paths that it supports.
    [[nodiscard]] virtual bool serves(Layout::Kind kind) const {
        return kind == Layout::Kind::contiguous;
    }
    // Returns why the machine cannot run the transfer's path and layout, or nullopt if it can. The
    // transfer's bytes and parameters are ignored.
    [[nodiscard]] virtual std::optional<std::string> unsupported_reason(const Transfer&,
                                                                        const Machine&) const = 0;
    // The parameters that apply to this path, layout and machine, with their possible values. The
    // transfer's bytes and parameters are ignored.
    [[nodiscard]] virtual std::vector<Parameter> parameters(const Transfer&,
                                                            const Machine&) const = 0;
    // Whether source and destination are one buffer, whose bytes change place but not address.
    [[nodiscard]] virtual bool in_place(const Transfer&, const Machine&) const { return false; }
    // Whether a second start without a restore in between does the same work. If not, each
    // repetition of a sample gets its own bytes.
    [[nodiscard]] virtual bool repeatable(const Transfer&, const Machine&) const { return true; }
    [[nodiscard]] virtual TimingMode timing(const Transfer&, const Machine&) const = 0;
    // The devices on which the caller makes one stream each; device timing times each of them, and
    // the slowest counts.
    [[nodiscard]] virtual std::vector<int> lanes(const Transfer&, const Machine&) const = 0;
    // The NUMA node whose CPUs must start the transfer; -1 for any.
    [[nodiscard]] virtual int submit_node(const Transfer&, const Machine&) const;
    // Whether the transfer needs peer access on or off between the contexts of the process, or
    // nullopt if it makes no difference.
    [[nodiscard]] virtual std::optional<bool> peer_access(const Transfer&, const Machine&) const;
    // For the transfer's bytes and parameters. The default has no staging: only the links of both
    // sides, and peer access if peer_access() asks for it.
    [[nodiscard]] virtual Requirements requirements(const Transfer&, const Machine&) const;
    // What arrives where if the memory at an end is at several places. Throws NotSupported by
    // default.
    [[nodiscard]] virtual Exchange exchange(const Transfer&, const Machine&) const;
    // `lanes` are the caller's streams, one for each entry of lanes(). They and the engine, whose
    // threads and staging memory it may use, must outlive the execution.
    [[nodiscard]] virtual std::unique_ptr<Execution> prepare(const Transfer&, const Machine&,
                                                             const std::vector<gpu::Stream*>& lanes,
                                                             transfer::Engine& engine) const = 0;
    // Between ranks: those that take part, in order. By default those at both ends.
    [[nodiscard]] virtual std::vector<int> participants(const Transfer&, const Machine&) const;
    // Returns what is allocated for one of the memories of several ranks; by default `local`.
    [[nodiscard]] virtual Memory allocated(const Transfer&, const Memory& local,
                                           const Machine&) const;
    // Between two ranks, instead of prepare(): prepares one end of the transfer, whose memory is
    // local. The group has the two ranks in the order of the transfer, and outlives the execution;
    // the view of the other end has no data. Throws NotSupported by default.
    [[nodiscard]] virtual std::unique_ptr<Execution> prepare_end(
        const Transfer&, const Machine&, Side side, const std::vector<gpu::Stream*>& lanes,
        ranks::Messenger& pair) const;
    // Among several ranks, instead of prepare(): prepares one rank's part. Both views are those of
    // every start, and have no data in a rank that exchange() names no memory of. The group has
    // the participants, which all call it. Throws NotSupported by default.
    [[nodiscard]] virtual std::unique_ptr<Execution> prepare_part(
        const Transfer&, const Machine&, const View& source, const View& destination,
        const std::vector<gpu::Stream*>& lanes, ranks::Messenger& group) const;
};

template <>
Registry<Executor>& Registry<Executor>::instance();
using Executors = Registry<Executor>;

// The value of a parameter: the transfer's own, else the executor's default for its path and
// machine. Throws NotSupported for a value that is not among the choices.
std::string parameter(const Executor&, const Transfer&, const Machine&, const std::string& name);

// Returns why a transfer cannot be run, or nullopt: unknown executor or memory, memory that the
// machine does not have, a path that the executor does not support, an unknown parameter.
std::optional<std::string> unsupported_reason(const Transfer&, const Machine&);

}  // namespace waywiser
