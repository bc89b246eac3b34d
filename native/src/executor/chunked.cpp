#include "executor/chunked.hpp"

#include <algorithm>

#include "executor/reach.hpp"
#include "host/pages.hpp"
#include "transfer/copy_method.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kLargeCopy = std::size_t{1} << 30;

Parameter ordered(std::string name, std::string description, std::size_t usual,
                  const std::vector<std::size_t>& others) {
    Parameter made{.name = std::move(name),
                   .description = std::move(description),
                   .kind = ParameterKind::ordered,
                   .choices = {std::to_string(usual)}};
    for (const std::size_t other : others) {
        const std::string choice = std::to_string(other);
        if (std::ranges::find(made.choices, choice) == made.choices.end()) {
            made.choices.push_back(choice);
        }
    }
    return made;
}

std::size_t count_cpus(const Machine& machine) {
    std::size_t cpus = 0;
    for (const NumaNode& node : machine.numa) cpus += node.cpus.size();
    return std::max<std::size_t>(cpus, 1);
}

transfer::Endpoint end_of(const Memory& memory) {
    if (memory.on_gpu()) return transfer::Endpoint::device(nullptr, memory.place.index);
    if (memory.in_file()) return transfer::Endpoint::of_file(-1, 0);
    return transfer::Endpoint::host(nullptr, known_to_gpus(memory));
}

}  // namespace

transfer::Endpoint end_of(const View& view) {
    if (view.file >= 0) return transfer::Endpoint::of_file(view.file, view.offset);
    if (view.memory->on_gpu())
        return transfer::Endpoint::device(view.data, view.memory->place.index);
    return transfer::Endpoint::host(view.data, known_to_gpus(*view.memory));
}

void ChunkedExecution::start(const View& source, const View& destination) {
    engine_.run(std::make_shared<transfer::ChunkedCopy>(engine_, end_of(destination),
                                                        end_of(source), source.bytes, shape_),
                transfer::Engine::Until::done);
}

int gpu_of(const Path& path) {
    if (path.destination.on_gpu()) return path.destination.place.index;
    return path.source.on_gpu() ? path.source.place.index : -1;
}

std::optional<std::string> staging_unsupported_reason(const Memory& memory) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    if (kind == nullptr) return "there is no kind of memory '" + memory.kind + "'";
    if (known_to_gpus(memory)) {
        return "copy engines reach " + memory.kind + " memory without staging";
    }
    if (memory.in_file() && kind->cpu_accessible()) {
        return "a mapped file that is cut while it is read kills the program: read the file";
    }
    return std::nullopt;
}

transfer::CopyShape shipped_shape(const Path& path, const Machine& machine,
                                  const std::vector<int>& relays) {
    return transfer::default_shape(end_of(path.destination), end_of(path.source), kLargeCopy,
                                   count_cpus(machine), relays);
}

Parameter threads_parameter(std::size_t usual, const Machine& machine) {
    const std::size_t cpus = count_cpus(machine);
    std::vector<std::size_t> others;
    for (std::size_t n = 1; n < cpus; n *= 2) others.push_back(n);
    others.push_back(cpus);
    return ordered("threads", "how many threads fill and drain the slots, on any CPU",
                   std::min(usual, cpus), others);
}

Parameter chunk_parameter(std::size_t usual) {
    constexpr std::size_t kMiB = std::size_t{1} << 20;
    return ordered("chunk", "bytes of a chunk, and of a slot", usual,
                   {kMiB, 2 * kMiB, 4 * kMiB, 8 * kMiB});
}

Parameter slots_parameter(std::size_t usual) {
    return ordered("slots", "chunks on their way at once, for each thread or link", usual,
                   {1, 2, 3, 4});
}

Parameter stores_parameter(bool streaming) {
    Parameter made{.name = "stores",
                   .description =
                       "how CPUs store to the destination: streaming (non-temporal, around the "
                       "caches) or ordinary",
                   .choices = {"streaming", "ordinary"}};
    if (!streaming) std::ranges::reverse(made.choices);
    return made;
}

transfer::CopyShape shape_of(const Executor& executor, const Transfer& transfer,
                             const Machine& machine) {
    const auto number = [&](const char* name) {
        const std::string value = parameter(executor, transfer, machine, name);
        return value.empty() ? std::size_t{0} : std::stoul(value);
    };
    transfer::CopyShape shape;
    // Slots are cut from whole pages.
    const std::size_t page = host::page_bytes();
    shape.chunk = std::max(number("chunk") / page * page, page);
    shape.threads = number("threads");
    shape.slots = number("slots");
    shape.streaming = parameter(executor, transfer, machine, "stores") == "streaming";
    shape.least = shipped_shape(transfer.path, machine).least;
    return shape;
}

}  // namespace waywiser
