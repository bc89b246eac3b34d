// Transfers that return when the host's side is free. The library waits for that; here they are cut
// into parts, between which signals are handled, and arrays are kept for as long as they are in
// use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "operand.hpp"
#include "pending_transfers.hpp"
#include "stream_follower.hpp"
#include "submission.hpp"

namespace waywiser::python {

// Maximum bytes of a part, in which the calling thread cannot be interrupted.
constexpr std::size_t kPart = std::size_t{1} << 30;

struct PartedTransfer {
    std::size_t bytes = 0;
    std::size_t most = kPart;  // bytes of a part
    bool to_gpu = false;       // the destination, which is in use until the stream has ended
    Streams streams;
    HeldOperands kept;
    const File* file = nullptr;  // one side, if that is a file
};

// What the library returns for a part.
struct PartResult {
    std::size_t moved = 0;
    waywiser_transfer* left = nullptr;  // the part, if it goes on
    int ended = 0;                      // without it: 1 if nothing uses the GPU's side any more
};

// Waits for the part, which still uses all operands. Returns the bytes that it has moved.
std::size_t wait_for_left(waywiser_transfer* left, std::size_t bytes, const PartedTransfer& whole,
                          const Held& destination);
// Raises what a part failed with. `moved`: bytes of all parts.
void check_part(waywiser_status status, std::size_t moved, const File* file);

// Calls move(context, at, bytes, result) for each part, which returns a status of the library.
// Returns the bytes that were moved: fewer than all only at the end of a file.
template <class Move>
std::size_t move_in_parts(ContextState& context, PartedTransfer whole, const Move& move) {
    StreamFollower follower(whole.streams, std::move(whole.kept.to));
    std::size_t at = 0;
    while (at < whole.bytes) {
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
        const std::size_t bytes = std::min(whole.most, whole.bytes - at);
        PartResult result;
        const waywiser_status status = use(context, [&](waywiser_context* c) {
            const waywiser_status now = move(c, at, bytes, result);
            const bool in_use = whole.to_gpu && result.left == nullptr && result.ended == 0;
            return now == WAYWISER_OK && in_use ? follower.mark(c) : now;
        });
        if (result.left != nullptr) {
            result.moved = wait_for_left(result.left, bytes, whole, follower.held());
        }
        at += result.moved;
        follower.note(status);
        keep_if_in_use(status, whole.kept.from);
        check_part(status, at, whole.file);
        if (result.moved < bytes) break;
    }
    return at;
}

}  // namespace waywiser::python
