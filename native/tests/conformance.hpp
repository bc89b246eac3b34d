// Every transfer that the registries and this machine make possible, and one of them laid out in
// guarded buffers. A new executor or memory kind is covered without a word here.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser::test {

// NUMA nodes with CPUs that may be used, and the GPUs that the seam shows.
Machine this_machine();

// Every kind of memory at the first two of its places, in its default variant.
std::vector<Memory> memories(const Machine& machine);
// Between all of them, by every executor: refused ones included.
std::vector<Path> paths(const Machine& machine);
// The path with its defaults, with every other value of every parameter, and with every other
// variant of either side: one at a time.
std::vector<Transfer> variations(const Path& path, const Machine& machine);

// Bytes of a seeded sequence, none of which repeats for long.
std::vector<std::byte> sequence(std::size_t bytes, unsigned seed);

// A buffer with room before and behind what a test uses, read and written by whoever can.
class GuardedBuffer {
public:
    GuardedBuffer(const Memory& memory, std::size_t most_bytes, const Machine& machine);

    // From `offset`, which is at most a page, behind the first guard.
    [[nodiscard]] View view(std::size_t offset, std::size_t bytes) const;
    // Guard, bytes and guard, as `view(offset, bytes)` has them.
    void write(std::size_t offset, const std::vector<std::byte>& guarded) const;
    [[nodiscard]] std::vector<std::byte> read(std::size_t offset, std::size_t bytes) const;

    static constexpr std::size_t kGuard = 256;
    static constexpr std::size_t kLargestOffset = 4096;

private:
    void copy(std::byte* to, const std::byte* from, std::size_t bytes) const;

    Memory memory_;
    bool by_cpu_;
    int gpu_;
    std::unique_ptr<Buffer> buffer_;
};

// What a transfer needs of its caller: streams, peer access, a thread on the right CPUs.
class Caller {
public:
    Caller(const Transfer& transfer, const Machine& machine);

    [[nodiscard]] const Executor& executor() const { return *executor_; }
    [[nodiscard]] std::unique_ptr<Execution> prepare() const;
    // Starts and returns when the transfer's own way of timing would stop the clock.
    void run(Execution& execution, const View& source, const View& destination) const;
    [[nodiscard]] const std::vector<gpu::Stream*>& lanes() const { return lanes_; }
    [[nodiscard]] TimingMode timing() const;

private:
    Transfer transfer_;
    const Machine& machine_;
    const Executor* executor_;
    std::vector<std::unique_ptr<gpu::Stream>> streams_;
    std::vector<gpu::Stream*> lanes_;
};

// Copies once from and to guarded buffers, at these offsets; says what was wrong, or nothing.
std::string copy_once(const Caller& caller, Execution& execution, const GuardedBuffer& source,
                      std::size_t source_offset, const GuardedBuffer& destination,
                      std::size_t destination_offset, std::size_t bytes, unsigned seed);

}  // namespace waywiser::test
