// A kind of memory: how to allocate it at a place, and where its pages really are.
// Each kind is one file in src/memory/; conformance and planning find it in the registry.
//
// Ownership: the registry owns kinds until the process ends. A caller owns each Buffer; its
// destructor frees the memory. The caller first ends all work that uses it.
// Memory and Machine are read during a call only.
// Thread safety: a MemoryKind is constant, and any thread may call it. A Buffer does not
// synchronise accesses to its bytes; restore() is called while nothing else uses them. Ordering:
// allocate() and restore() have completed when they return, in no stream. Units: bytes; fractions
// from 0 to 1.
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

// Where the pages of a buffer really are, if the system shows it.
struct Placement {
    enum class State { verified, misplaced, unverified };
    State state = State::unverified;
    double fraction_on_place = 0;  // of the pages that were queried; 0 if unverified
    double fraction_huge = 0;      // of the bytes that are in pages larger than the base page
    std::string detail;            // why unverified, or which nodes hold the rest
};

class Buffer {
public:
    virtual ~Buffer() = default;
    // The first byte, for as long as the buffer exists; a GPU's address for memory on a GPU.
    [[nodiscard]] virtual std::byte* data() const = 0;
    [[nodiscard]] virtual std::size_t bytes() const = 0;
    [[nodiscard]] virtual Placement placement() const = 0;
    // If the memory is a file: its descriptor, which the buffer owns, and the offset in bytes at
    // which the buffer starts.
    [[nodiscard]] virtual int file() const { return -1; }
    [[nodiscard]] virtual std::size_t offset() const { return 0; }
    // Returns the first `bytes` bytes to the state that the memory's variant names (out of the page
    // cache, say). Most kinds need nothing.
    virtual void restore(std::size_t /*bytes*/) {}
};

class MemoryKind {
public:
    virtual ~MemoryKind() = default;
    [[nodiscard]] virtual const Info& info() const = 0;
    [[nodiscard]] virtual std::vector<Place::Kind> place_kinds() const = 0;
    // What else planning, statistics and reports need to know about it.
    [[nodiscard]] virtual MemoryTraits traits() const { return {}; }
    // Whether CPUs can load and store it without moving its pages.
    [[nodiscard]] virtual bool cpu_accessible() const { return true; }
    // Whether its pages move to the processor that touches them: in-place executors alone
    // support it.
    [[nodiscard]] virtual bool migrates() const { return false; }
    // Whether it can be written. Files that the user names are only read.
    [[nodiscard]] virtual bool writable(const Memory&, const Machine&) const { return true; }
    // Whether a transfer changes the state that the next one finds (a cold file becomes warm), so
    // that each repetition of a sample needs its own bytes.
    [[nodiscard]] virtual bool used_up(const Memory&) const { return false; }
    // Bytes that the system moves or tracks as a unit. Pieces of a buffer start at multiples of it.
    [[nodiscard]] virtual std::size_t granule() const;
    // Whether it is host memory that GPUs access directly at a fixed address.
    [[nodiscard]] virtual bool page_locked() const { return false; }
    // The maximum size of a buffer, such as that of an existing file; 0 if only the machine's
    // memory limits it.
    [[nodiscard]] virtual std::size_t most_bytes(const Memory&, const Machine&) const { return 0; }
    // Returns why kernels of peer GPUs cannot reach it, or nullopt if they can.
    [[nodiscard]] virtual std::optional<std::string> peer_unsupported_reason(const Memory&) const {
        return std::nullopt;
    }
    // Whether allocation needs a working GPU runtime (to pin pages, say).
    [[nodiscard]] virtual bool needs_gpu() const { return false; }
    // Returns why this machine cannot allocate it, or nullopt if it can.
    [[nodiscard]] virtual std::optional<std::string> unsupported_reason(const Memory&,
                                                                        const Machine&) const;
    // The buffer is bound to the memory's place and touched. Throws gpu::Error, NotSupported,
    // std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<Buffer> allocate(const Memory&, std::size_t bytes,
                                                           const Machine&) const = 0;
};

// The memory as the process of its rank allocates it: at the rank's node or GPU, which the settings
// `numa` and `gpu` of the variant may name. Other memory is returned as it is. Throws NotSupported
// for a rank that the machine does not have.
Memory local_memory(const Memory& memory, const Machine& machine);

template <>
Registry<MemoryKind>& Registry<MemoryKind>::instance();
using Memories = Registry<MemoryKind>;

}  // namespace waywiser
