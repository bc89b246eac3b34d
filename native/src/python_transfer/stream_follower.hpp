// Keeps objects until a stream has come to the end of what a call put there.
#pragma once

#include "flights.hpp"
#include "operand.hpp"
#include "streams.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// Of one call, which may submit several parts. However the call ends, the objects live until the
// stream has passed the last mark.
class StreamFollower {
public:
    StreamFollower(const Streams& streams, Held held) : streams_(streams), held_(std::move(held)) {}
    // Needs the GIL.
    ~StreamFollower();
    StreamFollower(const StreamFollower&) = delete;
    StreamFollower& operator=(const StreamFollower&) = delete;

    // Marks the end of what is in the stream now; after each part, without the GIL.
    waywiser_status mark(waywiser_context* context);
    // What is put into another stream from now on starts after the last mark; nothing is marked in
    // a stream that is captured.
    waywiser_status hold_back(void* stream);

private:
    Streams streams_;
    Held held_;
    waywiser_transfer* mark_ = nullptr;
    bool unmarked_ = false;  // a part is in the stream, and nobody can say when it ends
};

}  // namespace waywiser::python
