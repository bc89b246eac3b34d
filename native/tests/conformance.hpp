// Every transfer that the registries and this machine support, and what it needs from its caller. A
// new executor, memory kind or layout is covered without a change here.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "conformance_buffers.hpp"
#include "gpu/gpu.hpp"
#include "transfer/engine.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser::test {

// NUMA nodes with usable CPUs, the GPUs of the seam, folders for scratch files and a file that is
// only read.
Machine this_machine();

// Whether a text for users is a single non-empty line.
inline bool one_line(const std::string& text) {
    return !text.empty() && text.find('\n') == std::string::npos;
}

// Temporary files of the process, which are removed at its end unless it is killed; for tests that
// kill it.
void remove_files();

// Every kind of memory at the first two of its NUMA nodes and GPUs, and at all file places, in its
// default variant.
std::vector<Memory> memories(const Machine& machine);
// Between all of them, by every executor, including unsupported paths.
std::vector<Path> paths(const Machine& machine);

// Boxes and lists that are awkward to move, each with a number of bytes.
struct Shaped {
    Layout layout;
    std::size_t bytes = 0;
};
std::vector<Shaped> awkward_layouts();

// The path in a layout with its defaults; with every other value of every parameter; and, if its
// bytes are contiguous, with every other variant of either side: one change at a time.
std::vector<Transfer> variations(const Path& path, const Machine& machine,
                                 const Layout& layout = {});

// What a transfer needs from its caller: streams, peer access, a thread on the right CPUs.
class Caller {
public:
    Caller(const Transfer& transfer, const Machine& machine);

    [[nodiscard]] const Executor& executor() const { return *executor_; }
    [[nodiscard]] std::unique_ptr<Execution> prepare() const;
    // Starts and returns when the transfer's own timing would stop the clock.
    void run(Execution& execution, const View& source, const View& destination) const;
    [[nodiscard]] const std::vector<gpu::Stream*>& lanes() const { return lanes_; }
    [[nodiscard]] TimingMode timing() const;
    [[nodiscard]] transfer::Engine& engine() const { return *engine_; }

private:
    Transfer transfer_;
    const Machine& machine_;
    const Executor* executor_;
    std::vector<std::unique_ptr<gpu::Stream>> streams_;
    std::vector<gpu::Stream*> lanes_;
    std::shared_ptr<transfer::Engine> engine_;
};

// Moves the bytes once, at these offsets from their earliest start; returns what is wrong, or an
// empty text.
std::string move_once(const Caller& caller, Execution& execution, GuardedTransfer& bytes,
                      Offsets offsets, unsigned seed);

}  // namespace waywiser::test
