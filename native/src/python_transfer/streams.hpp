// The streams that a call is ordered in.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "operand.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// What the caller passed as `stream`: a stream of torch or cupy, an object with __cuda_stream__, or
// a number. Nothing for None. Raises InvalidOperand for anything else.
std::optional<void*> stream_of(nanobind::handle stream);

inline void* legacy_stream_of(int gpu) { return WAYWISER_LEGACY_STREAM_OF(gpu); }
// The number of a stream for other libraries: of a default stream 1 or 2, whichever GPU it is of.
std::uintptr_t number_for_others(void* stream);

// The stream that carries a copy and, between GPUs whose libraries work on different streams, the
// destination's, which is ordered before and after the copy too.
struct Streams {
    void* carrier = nullptr;
    std::optional<void*> other;
};
Streams choose_streams(const std::optional<void*>& asked, const Operand& destination,
                       const Operand& source);
// For a transfer between a file and an operand.
void* choose_stream(const std::optional<void*>& asked, const Operand& operand);

}  // namespace waywiser::python
