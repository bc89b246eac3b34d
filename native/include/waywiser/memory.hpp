// A kind of memory: how to get bytes of it at a place, and where they really are.
// One file in src/memory/ per kind; conformance and planning learn of it from the registry.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/registry.hpp"
#include "waywiser/traits.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

// Where the pages of a buffer really are, as far as the system lets one ask.
struct Placement {
    enum class State { verified, misplaced, unverified };
    State state = State::unverified;
    double fraction_on_place = 0;  // of the pages asked about; 0 when unverified
    double fraction_huge = 0;      // of the bytes, in pages larger than the base page
    std::string detail;            // why unverified, or which nodes hold the rest
};

class Buffer {
public:
    virtual ~Buffer() = default;
    [[nodiscard]] virtual std::byte* data() const = 0;
    [[nodiscard]] virtual std::size_t bytes() const = 0;
    [[nodiscard]] virtual Placement placement() const = 0;
    // Where the memory is a file: its descriptor, and the offset at which the buffer starts.
    [[nodiscard]] virtual int file() const { return -1; }
    [[nodiscard]] virtual std::size_t offset() const { return 0; }
    // Brings the first so many bytes back to the state that the memory's variant names (out of the
    // page cache, say). Most have nothing to do.
    virtual void restore(std::size_t /*bytes*/) {}
};

class MemoryKind {
public:
    virtual ~MemoryKind() = default;
    [[nodiscard]] virtual const Info& info() const = 0;
    [[nodiscard]] virtual std::vector<Place::Kind> place_kinds() const = 0;
    // What planning, statistics and reports must know of it beside the answers below.
    [[nodiscard]] virtual MemoryTraits traits() const { return {}; }
    // Loads and stores of a CPU reach it, and leave it where it is.
    [[nodiscard]] virtual bool cpu_accessible() const { return true; }
    // Its pages move to whoever touches them: only executors that work in place serve it.
    [[nodiscard]] virtual bool migrates() const { return false; }
    // It can be written: a file that somebody named is only read.
    [[nodiscard]] virtual bool writable(const Memory&, const Machine&) const { return true; }
    // Moving the bytes changes what the next one to move them meets (a cold file is warm then), so
    // that each repetition of a sample gets bytes of its own.
    [[nodiscard]] virtual bool used_up(const Memory&) const { return false; }
    // Bytes that the system moves or keeps track of as one; pieces of a buffer start at multiples.
    [[nodiscard]] virtual std::size_t granule() const { return 4096; }
    // Host memory that GPUs read and write by themselves at an address that does not change.
    [[nodiscard]] virtual bool page_locked() const { return false; }
    // A buffer has at most so many bytes, as of a file that exists; 0 where nothing but the memory
    // of the machine bounds it.
    [[nodiscard]] virtual std::size_t most_bytes(const Memory&, const Machine&) const { return 0; }
    // Why kernels of other GPUs do not reach it, though the GPUs access each other's memory.
    [[nodiscard]] virtual std::optional<std::string> peer_refusal(const Memory&) const {
        return std::nullopt;
    }
    // Allocating pins pages or otherwise needs a GPU runtime that works.
    [[nodiscard]] virtual bool needs_gpu() const { return false; }
    // Nothing when a buffer can be had on this machine, else the reason why not.
    [[nodiscard]] virtual std::optional<std::string> refusal(const Memory&, const Machine&) const;
    // Bound and first touched where the memory says. Throws gpu::Error, Refused, std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<Buffer> allocate(const Memory&, std::size_t bytes,
                                                           const Machine&) const = 0;
};

template <>
Registry<MemoryKind>& Registry<MemoryKind>::instance();
using Memories = Registry<MemoryKind>;

}  // namespace waywiser
