// A stream of a transfer, timed between two events.
#pragma once

#include <algorithm>
#include <vector>

#include "gpu/gpu.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {

struct TimedLane {
    gpu::Stream* stream;
    gpu::Event start;
    gpu::Event stop;
    explicit TimedLane(gpu::Stream& on) : stream(&on), start(on.device()), stop(on.device()) {}
    // When both are over.
    [[nodiscard]] double seconds() const { return gpu::seconds_between(start, stop); }
};

// Whether any part has several lanes, whose own times are then of interest.
inline bool any_has_several_lanes(const std::vector<Part>& parts) {
    return std::ranges::any_of(parts, [](const Part& part) { return part.lanes.size() > 1; });
}

}  // namespace waywiser::measure
