#include "waywiser/registry.hpp"

#include <algorithm>

#include "host/clock.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

// Of an operation in one sample: enough for a nanosecond each to last.
constexpr std::size_t kMostRepetitions = 1 << 16;

std::string choices_text(const Parameter& parameter) {
    std::string text;
    for (const std::string& choice : parameter.choices) text += (text.empty() ? "" : ", ") + choice;
    return text;
}

// Ordered parameters take any whole number from the smallest to the largest of their choices.
bool takes(const Parameter& parameter, const std::string& value) {
    if (std::ranges::find(parameter.choices, value) != parameter.choices.end()) return true;
    if (parameter.kind != ParameterKind::ordered || value.empty() || value.size() > 9 ||
        !std::ranges::all_of(value, [](unsigned char c) { return c >= '0' && c <= '9'; })) {
        return false;
    }
    const auto number = [](const std::string& text) { return std::stol(text); };
    const auto [least, most] = std::ranges::minmax(parameter.choices, {}, number);
    return number(value) >= number(least) && number(value) <= number(most);
}

const Parameter* find(const std::vector<Parameter>& parameters, const std::string& name) {
    const auto it = std::ranges::find(parameters, name, &Parameter::name);
    return it == parameters.end() ? nullptr : &*it;
}

std::optional<std::string> bad_setting(const std::string& owner,
                                       const std::vector<Parameter>& known,
                                       const Settings& settings) {
    for (const auto& [name, value] : settings) {
        const Parameter* parameter = find(known, name);
        if (parameter == nullptr) return owner + " has no '" + name + "' here";
        if (!takes(*parameter, value)) {
            return owner + " has no " + name + "=" + value + " here: it takes " +
                   choices_text(*parameter);
        }
    }
    return std::nullopt;
}

// What the settings say of a parameter, else its default; nothing where it means nothing.
std::string setting(const std::string& owner, const std::vector<Parameter>& known,
                    const Settings& settings, const std::string& name) {
    const Parameter* found = find(known, name);
    if (found == nullptr) return {};
    const auto it = settings.find(name);
    if (it == settings.end()) return found->fallback();
    if (!takes(*found, it->second)) {
        throw Refused(*bad_setting(owner, known, {{name, it->second}}));
    }
    return it->second;
}

bool among(const std::vector<Place::Kind>& kinds, Place::Kind kind) {
    return std::ranges::find(kinds, kind) != kinds.end();
}

std::optional<std::string> missing_place(const Place& place, const Machine& machine) {
    if (place.kind == Place::Kind::gpu && machine.gpu(place.index) == nullptr) {
        return "this machine has no " + place.text();
    }
    if (place.kind == Place::Kind::numa && machine.node(place.index) == nullptr) {
        return "this machine has no " + place.text() + " with CPUs and memory";
    }
    if (place.kind == Place::Kind::file && machine.file(place.file) == nullptr) {
        return "this machine has no " + place.text() + ": name it with --file";
    }
    return std::nullopt;
}

std::optional<std::string> memory_refusal(const Memory& memory, const Machine& machine) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    if (kind == nullptr) return "there is no kind of memory '" + memory.kind + "'";
    if (!among(kind->place_kinds(), memory.place.kind)) {
        return memory.kind + " memory is not at " + memory.place.text();
    }
    if (auto reason = bad_setting(memory.kind, kind->info().parameters, memory.variant)) {
        return reason;
    }
    if (auto reason = missing_place(memory.place, machine)) return reason;
    if (kind->needs_gpu() && machine.gpus.empty()) {
        return memory.kind + " memory needs a GPU and this machine shows none";
    }
    return kind->refusal(memory, machine);
}

// Memory whose pages come to whoever touches them is moved by that alone.
std::optional<std::string> coming_refusal(const Executor& executor, const Transfer& transfer,
                                          const Machine& machine) {
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        const MemoryKind& kind = *Memories::instance().find(side->kind);
        if (kind.migrates() && !executor.in_place(transfer, machine)) {
            return side->kind +
                   " memory comes to whoever copies it: use an executor that moves it in place";
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> MemoryKind::refusal(const Memory&, const Machine&) const {
    return std::nullopt;
}

int Executor::submit_node(const Transfer& transfer, const Machine& machine) const {
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        if (side->on_host()) return side->place.index;
    }
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        const GpuPlace* gpu = side->on_gpu() ? machine.gpu(side->place.index) : nullptr;
        if (gpu != nullptr && machine.node(gpu->numa) != nullptr) return gpu->numa;
    }
    return -1;
}

std::optional<bool> Executor::peer_access(const Transfer&, const Machine&) const {
    return std::nullopt;
}

std::string parameter(const Executor& executor, const Transfer& transfer, const Machine& machine,
                      const std::string& name) {
    return setting(executor.info().name, executor.parameters(transfer, machine),
                   transfer.parameters, name);
}

double Trial::overhead() const { return host::clock_overhead(); }

std::size_t Trial::most_repetitions() const { return kMostRepetitions; }

std::optional<std::string> Operation::refusal(const OperationCall&, const Machine&) const {
    return std::nullopt;
}

std::vector<Parameter> Operation::parameters(const Place&, const Machine&) const {
    return info().parameters;
}

std::string parameter(const Operation& operation, const OperationCall& call, const Machine& machine,
                      const std::string& name) {
    return setting(call.name, operation.parameters(call.place, machine), call.parameters, name);
}

std::optional<std::string> refusal(const OperationCall& call, const Machine& machine) {
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
        return "no CPU of " + call.place.text() + " may be used";  // who would perform it there
    }
    return operation->refusal(call, machine);
}

std::optional<std::string> refusal(const Transfer& transfer, const Machine& machine) {
    const Executor* executor = Executors::instance().find(transfer.path.executor);
    if (executor == nullptr) return "there is no executor '" + transfer.path.executor + "'";
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        if (auto reason = memory_refusal(*side, machine)) return reason;
    }
    if (auto reason = coming_refusal(*executor, transfer, machine)) return reason;
    if (!Memories::instance()
             .find(transfer.path.destination.kind)
             ->writable(transfer.path.destination, machine)) {
        return transfer.path.destination.place.text() + " is only read";
    }
    if (!executor->serves(transfer.layout.kind)) {
        return executor->info().name + " does not move a " + transfer.layout.text();
    }
    if (auto reason = layout_refusal(transfer)) return reason;
    if (auto reason = executor->refusal(transfer, machine)) return reason;
    return bad_setting(executor->info().name, executor->parameters(transfer, machine),
                       transfer.parameters);
}

}  // namespace waywiser
