// Times one phase of an operation: creating or releasing a resource.
#pragma once

#include <cstddef>
#include <optional>

#include "operation/timed.hpp"

namespace waywiser {

enum class Phase { create, release };

// Creates and releases the resource `repetitions` times; returns the seconds of one phase.
template <class Resource>
double seconds_of(Phase phase, std::size_t repetitions, const auto&... made_of) {
    double seconds = 0;
    for (std::size_t i = 0; i < repetitions; ++i) {
        std::optional<Resource> resource;
        const double create_seconds = timed([&] { resource.emplace(made_of...); });
        const double release_seconds = timed([&] { resource.reset(); });
        seconds += phase == Phase::create ? create_seconds : release_seconds;
    }
    return seconds;
}

}  // namespace waywiser
