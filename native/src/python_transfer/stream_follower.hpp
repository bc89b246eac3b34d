// Keeps objects until a stream has completed the work of a call.
#pragma once

#include "operand.hpp"
#include "pending_transfers.hpp"
#include "streams.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// For one call, which may submit several parts. The objects live until the stream has passed the
// last mark, even if the call fails.
class StreamFollower {
public:
    StreamFollower(const Streams& streams, Held held) : streams_(streams), held_(std::move(held)) {}
    // Needs the GIL.
    ~StreamFollower();
    StreamFollower(const StreamFollower&) = delete;
    StreamFollower& operator=(const StreamFollower&) = delete;

    [[nodiscard]] const Held& held() const { return held_; }
    // After a call that has returned this.
    void note(waywiser_status status) { keep_if_in_use(status, held_); }
    // Marks the end of the work that is in the stream now. Call it after each part, without the
    // GIL.
    waywiser_status mark(waywiser_context* context);
    // Orders later work in another stream after the last mark; nothing is marked in a stream that
    // is captured.
    waywiser_status hold_back(void* stream);

private:
    Streams streams_;
    Held held_;
    waywiser_transfer* mark_ = nullptr;
    bool unmarked_ = false;  // a part is in the stream, and its end is unknown
};

}  // namespace waywiser::python
