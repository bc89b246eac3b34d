// Times a call by the host's clock, in seconds.
#pragma once

#include "host/clock.hpp"

namespace waywiser {

template <class Work>
double timed(const Work& work) {
    const double start = host::now();
    work();
    return host::now() - start;
}

}  // namespace waywiser
