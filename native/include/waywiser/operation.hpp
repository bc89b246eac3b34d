// An operation costs time but moves no bytes of its own (a launch, an allocation, a fault, one step
// of a pointer chase). Each file in src/operation/ has one or several related operations.
//
// Ownership: the registry owns operations until the process ends. A caller owns each Trial. The
// tools that it was prepared with, and their streams, outlive it. Thread safety: an Operation is
// constant, and any thread may call it. A Trial and its tools are used by one thread at a time.
// Ordering: run() and once() return when the work has completed, on the host and in the streams.
// Units: seconds; devices by number.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/registry.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

namespace gpu {
class Stream;
}

// What an operation may use of the session that measures it.
class OperationTools {
public:
    virtual ~OperationTools() = default;
    // The n-th stream of a device, from 0 on; the session owns it.
    virtual gpu::Stream& stream(int device, std::size_t n) = 0;
    // Calls `enqueue` once in the calling thread, while a closed gate blocks the streams, opens the
    // gate, and returns when the work is done.
    virtual void behind_gate(const std::vector<gpu::Stream*>& streams,
                             const std::function<void()>& enqueue) = 0;
    // Seconds between two events of the stream behind the gate with nothing between them.
    virtual double empty_interval(gpu::Stream& stream) = 0;
    // Enables peer access between two devices in both directions. Throws NotSupported in a process
    // that was started with peer access off.
    virtual void let_reach(int device, int other) = 0;
};

// A prepared operation.
class Trial {
public:
    virtual ~Trial() = default;
    // Performs it `repetitions` times and returns their total seconds by its clock (see
    // Operation::timing()). Undoing them between repetitions is not part of that time.
    virtual double run(std::size_t repetitions) = 0;
    // Performs it once, as an application would. Returns seconds of the host clock from the call to
    // completion.
    virtual double once() { return run(1); }
    // Seconds that the clock adds to a run.
    [[nodiscard]] virtual double overhead() const;
    // The minimum and maximum number of repetitions in a run.
    [[nodiscard]] virtual std::size_t least_repetitions() const { return 1; }
    [[nodiscard]] virtual std::size_t most_repetitions() const;
};

class Operation {
public:
    virtual ~Operation() = default;
    [[nodiscard]] virtual const Info& info() const = 0;
    [[nodiscard]] virtual std::vector<Place::Kind> place_kinds() const = 0;
    // Returns why it cannot be performed at the place, or nullopt if it can.
    [[nodiscard]] virtual std::optional<std::string> unsupported_reason(const OperationCall&,
                                                                        const Machine&) const;
    // The parameters that apply at the place, with their possible values.
    [[nodiscard]] virtual std::vector<Parameter> parameters(const Place&, const Machine&) const;
    // Which clock times it at such a place: events of the device, or the host's clock.
    [[nodiscard]] virtual TimingMode timing(Place::Kind) const { return TimingMode::host; }
    [[nodiscard]] virtual std::unique_ptr<Trial> prepare(const OperationCall&, const Machine&,
                                                         OperationTools&) const = 0;
};

template <>
Registry<Operation>& Registry<Operation>::instance();
using Operations = Registry<Operation>;

// The value of a parameter: the call's own, else the default at its place.
// Throws NotSupported for a value that is not among the choices.
std::string parameter(const Operation&, const OperationCall&, const Machine&,
                      const std::string& name);

// Returns why a call cannot be performed, or nullopt: unknown operation, a place that the machine
// does not have or that the operation does not support, an unknown parameter.
std::optional<std::string> unsupported_reason(const OperationCall&, const Machine&);

}  // namespace waywiser
