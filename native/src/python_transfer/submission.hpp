// Copies that are checked, on their way to the library.
#pragma once

#include <cstddef>
#include <memory>

#include "contexts.hpp"
#include "errors.hpp"
#include "flights.hpp"
#include "pieces.hpp"
#include "streams.hpp"
#include "unlocked.hpp"

namespace waywiser::python {

// Longest wait for the library in one piece: between two of them signals are handled.
constexpr double kWaitSlice = 0.1;
// Most bytes that one call of the library copies while the caller's thread helps.
constexpr std::size_t kPart = std::size_t{1} << 30;

// Results of calls that are no status of the library: the context was closed; the stream of the
// destination is being captured, but not the one that carries the copy.
constexpr auto kClosed = static_cast<waywiser_status>(15);
constexpr auto kOtherCaptured = static_cast<waywiser_status>(14);

// Makes calls of the library over a context, without the GIL. `call` gets the context of the
// library and returns a status.
template <class Call>
waywiser_status use(ContextState& context, const Call& call) {
    const Unlocked unlocked;
    const ContextState::Use in_use(context);
    return in_use.get() == nullptr ? kClosed : call(in_use.get());
}

[[noreturn]] void raise_other_captured();

// Raises what use() returned, if it is a failure.
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
    PieceList list;             // with pieces, or
    BlockList blocks;           // with blocks, if it is no copy of one piece
    std::size_t operands = 1;   // pairs of arrays
    bool names_stream = false;  // the caller did, with `stream=`
    bool to_host = true;
    bool from_host = true;
    Streams streams;
    HeldOperands kept;

    // Of a listed copy; else 0.
    [[nodiscard]] std::size_t pieces() const {
        return list.count() > 0 ? list.count() : blocks.count();
    }
    [[nodiscard]] bool listed() const { return pieces() > 0; }
    [[nodiscard]] PieceView piece(std::size_t i) const {
        return list.count() > 0 ? list.at(i) : blocks.at(i);
    }
};

// Copies, and returns as copy() promises it.
void run(ContextState& context, Submission& submission);
// Starts the copy and returns at once.
std::shared_ptr<Flight> start(ContextState& context, Submission& submission);

// Waits until the stream has come to the end of what is in it, between signals. False if there was
// nothing to wait for: on a machine without a GPU, and while the stream is captured.
bool wait_for_stream(ContextState& context, void* stream);
// As Flight::wait; if that raises, the transfer is kept.
std::size_t wait_or_keep(const std::shared_ptr<Flight>& flight);

}  // namespace waywiser::python
