// An operation: something that costs time but moves no bytes of its own (a launch, an allocation,
// a fault, one step of a pointer chase). One file in src/operation/ for each family of them.
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
    // The n-th stream of a device; it lives as long as the session.
    virtual gpu::Stream& stream(int device, std::size_t n) = 0;
    // Fills the streams behind a closed gate, opens it, and returns when all of it is done.
    virtual void behind_gate(const std::vector<gpu::Stream*>& streams,
                             const std::function<void()>& enqueue) = 0;
    // Seconds between two events of the stream behind the gate with nothing between them.
    virtual double empty_interval(gpu::Stream& stream) = 0;
    // Lets a device reach another's memory directly, and the other way round. Throws Refused in a
    // process that was started with peer access off.
    virtual void let_reach(int device, int other) = 0;
};

// An operation made ready.
class Trial {
public:
    virtual ~Trial() = default;
    // Performs it so many times; seconds that this took together, by the clock that it is defined
    // by. What has to be undone between repetitions is undone outside of that time.
    virtual double run(std::size_t repetitions) = 0;
    // Once, as an application would: seconds by the host's clock, from the call to completion.
    virtual double once() { return run(1); }
    // Seconds that the clock adds to a run.
    [[nodiscard]] virtual double overhead() const;
    // How often it is performed within a run at least, and at most.
    [[nodiscard]] virtual std::size_t least_repetitions() const { return 1; }
    [[nodiscard]] virtual std::size_t most_repetitions() const;
};

class Operation {
public:
    virtual ~Operation() = default;
    [[nodiscard]] virtual const Info& info() const = 0;
    [[nodiscard]] virtual std::vector<Place::Kind> place_kinds() const = 0;
    // Nothing when it can be performed at the place, else the reason why not.
    [[nodiscard]] virtual std::optional<std::string> refusal(const OperationCall&,
                                                             const Machine&) const;
    // The parameters that mean something at the place, with the values they can take there.
    [[nodiscard]] virtual std::vector<Parameter> parameters(const Place&, const Machine&) const;
    // Who tells the time at such a place: events of the device, or the host's clock.
    [[nodiscard]] virtual TimingMode timing(Place::Kind) const { return TimingMode::host; }
    [[nodiscard]] virtual std::unique_ptr<Trial> prepare(const OperationCall&, const Machine&,
                                                         OperationTools&) const = 0;
};

template <>
Registry<Operation>& Registry<Operation>::instance();
using Operations = Registry<Operation>;

// The value of a parameter: what the call says, else the default there.
// Throws Refused for a value that is not among the choices.
std::string parameter(const Operation&, const OperationCall&, const Machine&,
                      const std::string& name);

// Why a call cannot be performed: unknown operation, a place that the machine does not have or that
// is not one for it, a parameter it does not know.
std::optional<std::string> refusal(const OperationCall&, const Machine&);

}  // namespace waywiser
