// The operands of copies, checked and described for the library. Everything needs the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "copies.hpp"
#include "operand.hpp"
#include "pieces.hpp"
#include "streams.hpp"
#include "submission.hpp"

namespace waywiser::python {

// Both operands of one copy; appends the owners of their memory to `kept`.
struct Pair {
    Operand to;
    Operand from;

    Pair(const Context& context, nanobind::handle to_object, nanobind::handle from_object,
         const std::optional<void*>& stream, const char* call, HeldOperands& kept);
    // For copies whose GPUs are compared: queries the runtime if an operand does not name its GPU.
    void find_gpus();
    [[nodiscard]] bool to_host() const { return to.gpu == kHost; }
    [[nodiscard]] bool from_host() const { return from.gpu == kHost; }
};

inline bool share_bytes(const void* one, const void* other, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(one);
    const auto second = reinterpret_cast<std::uintptr_t>(other);
    return first < second + bytes && second < first + bytes;
}

// Sets where the copy of a pair goes and its streams; `requested` is the caller's stream.
void set_places(const Pair& pair, const std::optional<void*>& requested, Submission& submission);
// Whether the copy is of contiguous memory to itself, or of no bytes.
bool is_in_place(const Pair& pair);
// Sets the memory of the copy of a pair. Raises UnsupportedTransfer if it has more pieces than a
// list takes, and InvalidTransfer if elements share memory.
void set_memory(const Pair& pair, Submission& submission);
// Sets the pieces of a copy; none if all of them are already in place.
void set_pieces(PieceList pieces, const char* call, Submission& submission);
// Whether torch, if the program has imported it, made a copy of more pieces than a list takes. The
// library would reject it. `waits`: when this returns, the copy has ended.
bool copied_by_torch(const Pair& pair, nanobind::handle to, nanobind::handle from,
                     const std::optional<void*>& stream, bool waits);
// Both operands of a copy of blocks.
struct BlockOperands {
    nanobind::handle to, from, to_index, from_index;  // of the caller
    Operand destination, source;                      // which are read from `to` and `from`
};
// A copy of blocks; see blocks_of().
Submission blocks_submission(const Context& context, BlockOperands& blocks,
                             const std::optional<void*>& requested);

}  // namespace waywiser::python
