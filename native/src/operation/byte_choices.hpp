// Sizes at which operations on a range of memory are measured: a page and larger.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "waywiser/operation.hpp"

namespace waywiser {

inline Parameter byte_choices(std::vector<std::string> choices = {"4096", "65536", "1048576",
                                                                  "16777216"}) {
    return {.name = "bytes",
            .description = "of the range",
            .kind = ParameterKind::ordered,
            .choices = std::move(choices)};
}

inline std::size_t bytes_of(const Operation& operation, const OperationCall& call,
                            const Machine& machine) {
    return std::stoul(parameter(operation, call, machine, "bytes"));
}

}  // namespace waywiser
