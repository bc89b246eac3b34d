// Submits checked copies to the library.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "contexts.hpp"
#include "errors.hpp"
#include "gil_release.hpp"
#include "pending_transfers.hpp"
#include "pieces.hpp"
#include "streams.hpp"

namespace waywiser::python {

// Maximum uninterrupted wait for the library: signals are handled between two waits.
constexpr double kWaitSlice = 0.1;

// Results that are not a status of the library: the context was closed; the stream of the
// destination is being captured, but not the one that carries the copy.
constexpr auto kClosed = static_cast<waywiser_status>(15);
constexpr auto kOtherCaptured = static_cast<waywiser_status>(14);

// Makes calls of the library in a context, without the GIL. `call` gets the context of the library
// and returns a status.
template <class Call>
waywiser_status use(ContextState& context, const Call& call) {
    const GilRelease unlocked;
    const ContextState::Use in_use(context);
    return in_use.is_open() ? call(in_use.get()) : kClosed;
}

// Does what needs no library, without the GIL. The context cannot be closed meanwhile. Returns
// kClosed, and has done nothing, if it was.
template <class Work>
waywiser_status use_on_host(ContextState& context, const Work& work) {
    const GilRelease unlocked;
    const ContextState::Use in_use(context);
    if (!in_use.is_open()) return kClosed;
    work();
    return WAYWISER_OK;
}

[[noreturn]] void raise_other_captured();

// Raises the failure that use() returned, if it is one.
inline void check_use(waywiser_status status, std::size_t moved = 0) {
    if (status == kClosed) raise_closed();
    if (status == kOtherCaptured) raise_other_captured();
    check(status, moved);
}

// A copy of one piece, of listed pieces or blocks, or of nothing.
struct Submission {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
    std::size_t moved = 0;      // that have arrived already
    PieceList list;             // pieces, or
    BlockList blocks;           // blocks, unless it is a copy of one piece
    std::size_t operands = 1;   // pairs of arrays
    bool names_stream = false;  // the caller passed `stream=`
    bool to_host = true;
    bool from_host = true;
    Streams streams;
    HeldOperands kept;

    // Number of pieces of a listed copy; else 0.
    [[nodiscard]] std::size_t pieces() const {
        return list.count() > 0 ? list.count() : blocks.count();
    }
    [[nodiscard]] bool listed() const { return pieces() > 0; }
    // Of a copy with a GPU: an address in its memory, or in the destination's.
    [[nodiscard]] const void* first_on_gpu() const {
        if (list.count() > 0) return to_host ? list.from[0] : list.to[0];
        if (blocks.count() > 0) return to_host ? blocks.from : blocks.to;
        return to_host ? from : to;
    }
};

// Orders the carrier after the work in the other stream, if there is any. `captured`: the carrier
// is being captured, and nothing was done: the library records the copy in it, or rejects it.
waywiser_status order_before(waywiser_context* context, const Streams& streams, bool& captured);

// Fewer bytes in host memory take the calling thread less time than the library takes to find out
// what they are, or to share them out to threads.
constexpr std::size_t kInline = std::size_t{8} << 20;

// Copies between host memories that share no byte, with the calling thread. Keeps the GIL for few
// bytes.
void copy_on_host(ContextState& context, void* to, const void* from, std::size_t bytes);
// Describes what run() would do.
// "none", "plain", "chunked" or "list".
const char* method_of_copy(ContextState& context, const Submission& copy);
std::string explain_copy(ContextState& context, const Submission& submission);
// Copies, and returns when copy() of the module does (see _transfer.pyi).
void run(ContextState& context, Submission& submission);
// Starts the copy and returns at once.
std::shared_ptr<PendingTransfer> start(ContextState& context, Submission& submission);
// The same beside the stream, for pieces of one GPU's memory that go to the host.
std::shared_ptr<PendingTransfer> start_snapshot(ContextState& context, Submission& submission);

}  // namespace waywiser::python
