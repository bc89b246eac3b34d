// Times one of the two halves of an operation: creating or releasing a resource.
#pragma once

#include <cstddef>
#include <optional>

#include "operation/timed.hpp"

namespace waywiser {

enum class Half { making, giving_back };

// Creates and releases the resource `repetitions` times; returns the seconds of one half.
template <class Resource>
double seconds_of(Half half, std::size_t repetitions, const auto&... made_of) {
    double seconds = 0;
    for (std::size_t i = 0; i < repetitions; ++i) {
        std::optional<Resource> resource;
        const double making = timed([&] { resource.emplace(made_of...); });
        const double giving_back = timed([&] { resource.reset(); });
        seconds += half == Half::making ? making : giving_back;
    }
    return seconds;
}

}  // namespace waywiser
