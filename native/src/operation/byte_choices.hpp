// Sizes at which operations on a range of memory are told: a page, and up from there.
#pragma once

#include <cstddef>
#include <string>

#include "waywiser/operation.hpp"

namespace waywiser {

inline Parameter byte_choices() {
    return {.name = "bytes",
            .description = "of the range, from a page to 256 MiB",
            .kind = ParameterKind::ordered,
            .choices = {"4096", "65536", "1048576", "16777216", "268435456"}};
}

inline std::size_t bytes_of(const Operation& operation, const OperationCall& call,
                            const Machine& machine) {
    return std::stoul(parameter(operation, call, machine, "bytes"));
}

}  // namespace waywiser
