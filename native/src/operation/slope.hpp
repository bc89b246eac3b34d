// The cost of one step: the slope of a walk's time over its length.
#pragma once

#include "waywiser/words.hpp"

namespace waywiser {

// Seconds of a walk of some steps, and of another of twice as many.
struct Walks {
    double some;
    double twice_as_many;
};

// Seconds of `steps` steps alone: launch, timer and setup are in both walks and cancel. If a delay
// made the shorter walk take as long as the longer one, both are repeated. Throws NotSupported if
// that persists.
template <class Walk>
double slope(const Walk& walk) {
    constexpr int kTries = 48;
    for (int tries = 0; tries < kTries; ++tries) {
        const Walks seconds = walk();
        const double steps = seconds.twice_as_many - seconds.some;
        if (steps > 0) return steps;
    }
    throw NotSupported(
        "twice as many steps take no longer than once as many: the timer cannot resolve them");
}

}  // namespace waywiser
