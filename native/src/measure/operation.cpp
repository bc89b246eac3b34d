#include "waywiser/operation.hpp"

#include "host/clock.hpp"
#include "unsupported_reasons.hpp"

namespace waywiser {
namespace {

// Maximum repetitions in one sample: enough for operations of a nanosecond.
constexpr std::size_t kMostRepetitions = 1 << 16;

}  // namespace

template <>
Registry<Operation>& Registry<Operation>::instance() {
    static Registry registry;
    return registry;
}

double Trial::overhead() const { return host::clock_overhead(); }

std::size_t Trial::most_repetitions() const { return kMostRepetitions; }

std::optional<std::string> Operation::unsupported_reason(const OperationCall&,
                                                         const Machine&) const {
    return std::nullopt;
}

std::vector<Parameter> Operation::parameters(const Place&, const Machine&) const {
    return info().parameters;
}

std::string parameter(const Operation& operation, const OperationCall& call, const Machine& machine,
                      const std::string& name) {
    return setting(call.name, operation.parameters(call.place, machine), call.parameters, name);
}

std::optional<std::string> unsupported_reason(const OperationCall& call, const Machine& machine) {
    const Operation* operation = Operations::instance().find(call.name);
    if (operation == nullptr) return "there is no operation '" + call.name + "'";
    if (!among(operation->place_kinds(), call.place.kind)) {
        return call.name + " is not performed at " + call.place.text();
    }
    if (auto reason = missing_place(call.place, machine)) return reason;
    if (auto reason =
            bad_setting(call.name, operation->parameters(call.place, machine), call.parameters)) {
        return reason;
    }
    if (call.place.kind == Place::Kind::numa && machine.cpus(call.place).empty()) {
        return "no CPU of " + call.place.text() + " may be used";  // needed to perform it there
    }
    return operation->unsupported_reason(call, machine);
}

}  // namespace waywiser
