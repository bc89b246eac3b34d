// An executor: who moves the bytes. One file in src/executor/ each; everything else (planning,
// timing, verification, storage, analysis) learns of it from the registry.
//
// It works on views and never owns the user's buffers, so a program can call the very same object
// that the survey measures.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/registry.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

namespace gpu {
class Stream;
}

// Somebody's bytes: where they start, how many, and what and where they are.
struct View {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    const Memory* memory = nullptr;
};

// One transfer made ready: persistent resources (threads, rings), reused by every start.
class Execution {
public:
    virtual ~Execution() = default;
    // Brings the state of both sides back to what it was before a start. Most have nothing to do.
    virtual void restore(const View& /*source*/, const View& /*destination*/) {}
    // Right before a start that is timed: wakes what sleeps between starts, and touches no bytes.
    virtual void wake() {}
    // Device timing: enqueues on the lanes and returns. Host timing: may block until done.
    virtual void start(const View& source, const View& destination) = 0;
    // Host timing: returns when every byte has arrived at the destination.
    virtual void finish() {}
};

class Executor {
public:
    virtual ~Executor() = default;
    [[nodiscard]] virtual const Info& info() const = 0;

    // Nothing when the path can be run on the machine, else the reason why not.
    [[nodiscard]] virtual std::optional<std::string> refusal(const Path&, const Machine&) const = 0;
    // The parameters that mean something on this path and machine, with the values they can take.
    [[nodiscard]] virtual std::vector<Parameter> parameters(const Path&, const Machine&) const = 0;
    [[nodiscard]] virtual TimingMode timing(const Transfer&, const Machine&) const = 0;
    // The devices on which the caller makes one stream each; the first carries the timing events.
    [[nodiscard]] virtual std::vector<int> lanes(const Transfer&, const Machine&) const = 0;
    // The NUMA node from whose CPUs the transfer is to be started; -1 for anywhere.
    [[nodiscard]] virtual int submit_node(const Transfer&, const Machine&) const;
    // Peer access between the contexts of the process that this transfer needs: on or off, or
    // nothing where it does not matter.
    [[nodiscard]] virtual std::optional<bool> peer_access(const Transfer&, const Machine&) const;
    // `lanes` are the caller's streams, one per entry of lanes(), and outlive the execution.
    [[nodiscard]] virtual std::unique_ptr<Execution> prepare(
        const Transfer&, const Machine&, const std::vector<gpu::Stream*>& lanes) const = 0;
};

using Executors = Registry<Executor>;

// The value of a parameter of a transfer: what it says, else the default of its executor there.
// Throws Refused for a value that is not among the choices.
std::string parameter(const Executor&, const Transfer&, const Machine&, const std::string& name);

// Why a transfer cannot be run: unknown executor or memory, a memory that the machine cannot
// give, an executor that does not serve the path, a parameter it does not know.
std::optional<std::string> refusal(const Transfer&, const Machine&);

}  // namespace waywiser
