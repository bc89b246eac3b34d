#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "measure/interval.hpp"
#include "measure/timer.hpp"

namespace waywiser::measure {
namespace {

constexpr std::size_t kOverheadSamples = 25;

}  // namespace

void behind_gate(const std::set<gpu::Stream*>& streams, gpu::Gate& gate, Watchdog& watchdog,
                 const std::function<void()>& enqueue) {
    struct Opener {  // also if enqueueing throws: no stream may stay blocked
        gpu::Gate& gate;
        ~Opener() { gate.open(); }
    };
    watchdog.closing();
    {
        const Opener opener{gate};
        for (gpu::Stream* stream : streams) gate.close(*stream);
        enqueue();
    }
    const bool in_time = watchdog.opened();
    for (gpu::Stream* stream : streams) stream->synchronize();
    watchdog.finished();
    if (!in_time) {
        throw BlocksBehindGate(
            "a call blocks the host behind a closed gate: the watchdog opened it");
    }
}

double empty_interval(gpu::Stream& stream, gpu::Gate& gate, Watchdog& watchdog) {
    gpu::Event start(stream.device());
    gpu::Event stop(stream.device());
    std::vector<double> samples(kOverheadSamples);
    std::ranges::generate(samples, [&] {
        behind_gate({&stream}, gate, watchdog, [&] {
            start.record(stream);
            stop.record(stream);
        });
        return gpu::seconds_between(start, stop);
    });
    return median_interval(std::move(samples)).median;
}

}  // namespace waywiser::measure
