// The streams in which a call is ordered.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "operand.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// Limit of waits that cannot be long: of one stream for work submitted to another.
inline constexpr double kNoLimit = -1;

// The caller's argument `stream`: a stream of torch or cupy, an object with __cuda_stream__, or a
// number. nullopt for None. Raises InvalidOperand for anything else.
std::optional<void*> stream_of(nanobind::handle stream);

inline void* legacy_stream_of(int gpu) { return WAYWISER_LEGACY_STREAM_OF(gpu); }
// The number of a stream for other libraries; 1 or 2 for a default stream of any GPU.
std::uintptr_t number_for_others(void* stream);

// The stream that carries a copy and, between GPUs whose libraries use different streams, the
// destination's, which is ordered before and after the copy too.
struct Streams {
    void* carrier = WAYWISER_NO_STREAM;
    std::optional<void*> other;
    // The GPU whose default streams the numbers 0, 1 and 2 mean: that of the destination, or of the
    // source of a copy to the host. kSomeGpu until the runtime is queried; kHost without a GPU.
    int gpu = kHost;

    bool operator==(const Streams&) const = default;
};
Streams choose_streams(const std::optional<void*>& requested, const Operand& destination,
                       const Operand& source);
// A default stream with its GPU; any other stream, or with a negative GPU, is unchanged.
void* with_gpu(void* stream, int gpu);
// Queries the runtime for the GPU of memory; negative if unknown.
int gpu_at(const void* memory);
// The GPU of device memory, from the runtime if necessary; kSomeGpu if unknown.
int known_gpu(const Operand& operand);

}  // namespace waywiser::python
