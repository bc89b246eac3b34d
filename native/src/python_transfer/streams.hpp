// The streams that a call is ordered in.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "operand.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// Of waits that cannot be long: of one stream for what is submitted to another.
inline constexpr double kNoLimit = -1;

// What the caller passed as `stream`: a stream of torch or cupy, an object with __cuda_stream__, or
// a number. Nothing for None. Raises InvalidOperand for anything else.
std::optional<void*> stream_of(nanobind::handle stream);

inline void* legacy_stream_of(int gpu) { return WAYWISER_LEGACY_STREAM_OF(gpu); }
// The number of a stream for other libraries: of a default stream 1 or 2, whichever GPU it is of.
std::uintptr_t number_for_others(void* stream);

// The stream that carries a copy and, between GPUs whose libraries work on different streams, the
// destination's, which is ordered before and after the copy too.
struct Streams {
    void* carrier = WAYWISER_NO_STREAM;
    std::optional<void*> other;
    // Whose default streams the numbers 0, 1 and 2 mean: that of the destination, or of the source
    // of a copy to the host. kSomeGpu until somebody asks the runtime; kHost without a GPU.
    int gpu = kHost;

    bool operator==(const Streams&) const = default;
};
Streams choose_streams(const std::optional<void*>& asked, const Operand& destination,
                       const Operand& source);
// A default stream with the GPU that it belongs to; any other stream, and a negative GPU: as it is.
void* with_gpu(void* stream, int gpu);
// Asks the runtime which GPU memory is on; negative if it does not say.
int gpu_at(const void* memory);
// The GPU of device memory, for which the runtime is asked if need be; kSomeGpu if it does not say.
int known_gpu(const Operand& operand);

}  // namespace waywiser::python
