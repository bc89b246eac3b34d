// A prepared workload whose transfers start together and are timed by the devices or by the host.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "gpu/gpu.hpp"
#include "measure/watchdog.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/operation.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// The most repetitions of a sample that the host times.
inline constexpr std::size_t kMostRepetitions = 1 << 16;

// One prepared transfer of the workload: its execution, its views, and where to time it.
struct Part {
    std::unique_ptr<Execution> execution;
    std::vector<gpu::Stream*> lanes;  // each is timed
    std::vector<int> cpu;             // CPUs of its host thread
    View source;
    View destination;
    std::size_t stride = 0;  // bytes from one slice of the buffers to the next
    std::size_t slices = 1;  // distinct slices that repetitions use in turn
    bool in_place = false;   // source and destination are the same bytes
    // Among several memories, the buffers that the views refer to.
    std::vector<std::byte*> sources, destinations;

    void start(std::size_t repetition) const {
        const std::size_t offset = repetition % slices * stride;
        execution->start(at(source, offset), at(destination, offset));
    }
    static View at(View view, std::size_t offset) {
        if (view.data != nullptr) view.data += offset;
        view.offset += offset;
        return view;
    }
};

struct Timing {
    double span = 0;  // seconds of one repetition
    double skew = 0;
    std::vector<double> transfers;           // seconds of one repetition of each
    std::vector<std::vector<double>> lanes;  // as in Sample
    std::vector<double> alone;               // as in Sample
};

class Timer {
public:
    virtual ~Timer() = default;
    // Starts all parts together, `repetitions` times each, and times one repetition.
    virtual Timing take(std::size_t repetitions) = 0;
    // One execution as an application sees it: seconds from the first call to completion.
    virtual double once() = 0;
    // Seconds that timing adds to an empty interval.
    [[nodiscard]] virtual double overhead() = 0;
    // Minimum number of repetitions for a meaningful time.
    [[nodiscard]] virtual std::size_t least_repetitions() const { return 1; }
    // Maximum number of repetitions that can be queued behind a gate or are useful.
    [[nodiscard]] virtual std::size_t most_repetitions() const = 0;
};

std::unique_ptr<Timer> device_timer(const std::vector<Part>& parts, gpu::Gate& gate,
                                    Watchdog& watchdog);
std::unique_ptr<Timer> host_timer(const std::vector<Part>& parts);
std::unique_ptr<Timer> operation_timer(Trial& trial);

// The time at which the running repetition of a transfer began; 0 if none runs. Any thread may read
// it.
struct Underway {
    std::atomic<double> since{0};
};
// Times each part while the others run throughout, and alone in turn. `underway` has one entry for
// each part.
std::unique_ptr<Timer> sustained_timer(const std::vector<Part>& parts,
                                       std::vector<Underway>& underway);

// Closes the gate on all streams, calls `enqueue`, opens the gate, and waits for all streams.
// Throws BlocksBehindGate if the watchdog had to open it.
void behind_gate(const std::set<gpu::Stream*>& streams, gpu::Gate& gate, Watchdog& watchdog,
                 const std::function<void()>& enqueue);

// Seconds between two events with nothing between them behind the gate: the overhead of device
// timing.
double empty_interval(gpu::Stream& stream, gpu::Gate& gate, Watchdog& watchdog);

}  // namespace waywiser::measure
