// The bytes of a transfer in buffers with guards: checks that the right bytes arrive, and that
// nothing is written around them or between their runs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "many_bytes.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser::test {

// A buffer with guards before and after the tested part, accessible by the CPU or a GPU.
class GuardedBuffer {
public:
    GuardedBuffer(const Memory& memory, std::size_t bytes, std::size_t guard,
                  const Machine& machine);

    // From `offset` after the first guard on.
    [[nodiscard]] View view(std::size_t offset, std::size_t bytes) const;
    [[nodiscard]] bool writable() const { return writable_; }
    // All of it, including guards.
    void write(const std::vector<std::byte>& all) const;
    [[nodiscard]] std::vector<std::byte> read() const;

private:
    Memory memory_;
    bool by_cpu_;
    bool writable_;
    int gpu_;
    std::size_t guard_;
    std::size_t bytes_;  // including guards
    std::unique_ptr<Buffer> buffer_;
};

// The earliest start of the bytes on each side, up to a page.
struct Offsets {
    std::size_t source = 0;
    std::size_t destination = 0;
};

// Whether bytes may start anywhere. In files and for in-place transfers they start at multiples of
// the granule.
bool starts_anywhere(const Transfer& transfer, const Machine& machine);

// Both sides of a transfer, with several consecutive slices.
class GuardedTransfer {
public:
    GuardedTransfer(const Transfer& transfer, const Machine& machine, std::size_t times = 1);

    // Fills the source with bytes of the seed, and the destination with others.
    void lay(Offsets offsets, unsigned seed);
    [[nodiscard]] View source(std::size_t time = 0) const;
    [[nodiscard]] View destination(std::size_t time = 0) const;
    // After all slices were moved: returns what is wrong, or an empty text.
    [[nodiscard]] std::string wrong() const;

    static constexpr std::size_t kGuard = 256;
    static constexpr std::size_t kLargestOffset = 4096;

private:
    [[nodiscard]] std::size_t start(std::size_t time, const Arrangement& side,
                                    std::size_t offset) const;
    [[nodiscard]] View arranged(const GuardedBuffer& buffer, std::size_t at, const Memory& memory,
                                const Arrangement& side) const;

    Transfer transfer_;
    std::size_t times_;
    bool in_place_;
    Arrangement from_;
    Arrangement to_;
    std::size_t guard_;
    GuardedBuffer source_;
    std::unique_ptr<GuardedBuffer> destination_;  // null if in place
    Offsets offsets_;
    std::vector<std::byte> sent_;
    std::vector<std::byte> expected_;
};

}  // namespace waywiser::test
