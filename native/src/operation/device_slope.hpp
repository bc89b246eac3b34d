// The slope of a GPU walk's time, measured by events behind the gate.
#pragma once

#include "gpu/gpu.hpp"
#include "operation/slope.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {

class DeviceSlope {
public:
    DeviceSlope(gpu::Stream& stream, OperationTools& tools)
        : stream_(stream),
          tools_(tools),
          overhead_(tools.empty_interval(stream)),
          start_(stream.device()),
          middle_(stream.device()),
          stop_(stream.device()) {}

    // Seconds of `steps` steps. `walk(n)` launches n steps. A single step is launched first, so
    // that both timed launches follow another.
    template <class Walk>
    double operator()(std::size_t steps, const Walk& walk) {
        return slope([&] {
            tools_.behind_gate({&stream_}, [&] {
                walk(std::size_t{1});
                start_.record(stream_);
                walk(steps);
                middle_.record(stream_);
                walk(2 * steps);
                stop_.record(stream_);
            });
            return Walks{gpu::seconds_between(start_, middle_),
                         gpu::seconds_between(middle_, stop_)};
        });
    }
    // Seconds that events add to each walk. They cancel in the slope and bound its error.
    [[nodiscard]] double overhead() const { return overhead_; }

private:
    gpu::Stream& stream_;
    OperationTools& tools_;
    double overhead_;
    gpu::Event start_;
    gpu::Event middle_;
    gpu::Event stop_;
};

}  // namespace waywiser
