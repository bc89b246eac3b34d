// When measurements of operations end in tests.
#pragma once

#include "waywiser/session.hpp"

namespace waywiser::test {

// Ends after few samples, also if they differ much.
constexpr StopRule quick_operation(double hard_seconds) {
    return {.target = 0.9,
            .wanted = 0.9,
            .minimum = 6,
            .slow_minimum = 6,
            .slow_seconds = 0.020,
            .maximum = 20,
            .minimum_seconds = 0,
            .soft_seconds = 0.001,
            .hard_seconds = hard_seconds};
}

}  // namespace waywiser::test
