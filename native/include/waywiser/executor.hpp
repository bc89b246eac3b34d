// An executor: who moves the bytes. One file in src/executor/ each; everything else (planning,
// timing, verification, storage, analysis) learns of it from the registry.
//
// It works on views and never owns the user's buffers, so a program can call the very same object
// that the survey measures.
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

// Somebody's bytes: where they start, how many, and what and where they are.
struct View {
    std::byte* data = nullptr;
    std::size_t bytes = 0;  // that are moved
    const Memory* memory = nullptr;
    const Arrangement* arrangement = nullptr;  // how they lie from `data` on; nothing: contiguous
    int file = -1;                             // where the memory is a file: its descriptor
    std::size_t offset = 0;                    // and where in the file the bytes start
};

// One transfer made ready: persistent resources (threads, rings), reused by every start.
class Execution {
public:
    virtual ~Execution() = default;
    // Brings the state of both sides back to what it was before a start, and returns when it is
    // so. Most have nothing to do. Called for every piece of the buffers that repetitions take.
    virtual void restore(const View& /*source*/, const View& /*destination*/) {}
    // Right before a start that is timed: wakes what sleeps between starts, and touches no bytes.
    virtual void wake() {}
    // Device timing: enqueues on the lanes and returns. Host timing: may block until done.
    virtual void start(const View& source, const View& destination) = 0;
    // How many entries a start puts on the fullest of its lanes: behind a closed gate they count.
    [[nodiscard]] virtual std::size_t entries() const { return 1; }
    // Host timing: returns when every byte has arrived at the destination.
    virtual void finish() {}
};

// What a transfer takes besides the memory of its two sides. Memory limits, plans and the evidence
// of links read this one answer.
struct Requirements {
    std::size_t threads = 0;                  // of CPUs that move bytes
    std::size_t pinned_bytes = 0;             // staging on the host
    std::map<int, std::size_t> device_bytes;  // staging by GPU
    std::vector<std::pair<int, int>> peers;   // GPUs that access each other's memory
    std::vector<int> host_links;              // GPUs whose links to the host carry bytes
    bool operator==(const Requirements&) const = default;
};

class Executor {
public:
    virtual ~Executor() = default;
    [[nodiscard]] virtual const Info& info() const = 0;
    // What planning, statistics and reports must know of it.
    [[nodiscard]] virtual Traits traits() const { return {}; }

    // The layouts that it can move on the paths that it serves.
    [[nodiscard]] virtual bool serves(Layout::Kind kind) const {
        return kind == Layout::Kind::contiguous;
    }
    // Nothing when the transfer's path and layout can be run on the machine, else the reason why
    // not. The bytes and parameters of the transfer are not looked at.
    [[nodiscard]] virtual std::optional<std::string> refusal(const Transfer&,
                                                             const Machine&) const = 0;
    // The parameters that mean something for this path, layout and machine, with the values they
    // can take. The bytes and parameters of the transfer are not looked at.
    [[nodiscard]] virtual std::vector<Parameter> parameters(const Transfer&,
                                                            const Machine&) const = 0;
    // Source and destination are one buffer, whose bytes change places without changing address.
    [[nodiscard]] virtual bool in_place(const Transfer&, const Machine&) const { return false; }
    // Whether a start that follows another without a restore between does the same again. Where it
    // does not, each repetition of a sample gets bytes of its own.
    [[nodiscard]] virtual bool repeatable(const Transfer&, const Machine&) const { return true; }
    [[nodiscard]] virtual TimingMode timing(const Transfer&, const Machine&) const = 0;
    // The devices on which the caller makes one stream each; the first carries the timing events.
    [[nodiscard]] virtual std::vector<int> lanes(const Transfer&, const Machine&) const = 0;
    // The NUMA node from whose CPUs the transfer is to be started; -1 for anywhere.
    [[nodiscard]] virtual int submit_node(const Transfer&, const Machine&) const;
    // Peer access between the contexts of the process that this transfer needs: on or off, or
    // nothing where it does not matter.
    [[nodiscard]] virtual std::optional<bool> peer_access(const Transfer&, const Machine&) const;
    // At its number of bytes and with its parameters. The default knows no staging: the links of
    // both sides, and peer access where the executor asks for it.
    [[nodiscard]] virtual Requirements requirements(const Transfer&, const Machine&) const;
    // `lanes` are the caller's streams, one per entry of lanes(), and outlive the execution. So
    // does the engine, whose threads and staging memory it may use.
    [[nodiscard]] virtual std::unique_ptr<Execution> prepare(const Transfer&, const Machine&,
                                                             const std::vector<gpu::Stream*>& lanes,
                                                             transfer::Engine& engine) const = 0;
};

template <>
Registry<Executor>& Registry<Executor>::instance();
using Executors = Registry<Executor>;

// The value of a parameter of a transfer: what it says, else the default of its executor there.
// Throws Refused for a value that is not among the choices.
std::string parameter(const Executor&, const Transfer&, const Machine&, const std::string& name);

// Why a transfer cannot be run: unknown executor or memory, a memory that the machine cannot
// give, an executor that does not serve the path, a parameter it does not know.
std::optional<std::string> refusal(const Transfer&, const Machine&);

}  // namespace waywiser
