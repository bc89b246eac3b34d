#include "executor/chunked.hpp"

#include <algorithm>

#include "executor/reach.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kUsualThreads = 12;  // more do not help one PCIe 5.0 link

}  // namespace

transfer::End end_of(const View& view) {
    if (view.file >= 0) return transfer::End::of_file(view.file, view.offset);
    if (view.memory->on_gpu()) return transfer::End::device(view.data, view.memory->place.index);
    return transfer::End::host(view.data, known_to_gpus(*view.memory));
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

Parameter copying_threads(const Machine& machine) {
    std::size_t cpus = 0;
    for (const NumaNode& node : machine.numa) cpus += node.cpus.size();
    cpus = std::max<std::size_t>(cpus, 1);
    std::vector<std::string> choices{std::to_string(std::min(cpus, kUsualThreads))};
    for (std::size_t n = 1; n < cpus; n *= 2) choices.push_back(std::to_string(n));
    choices.push_back(std::to_string(cpus));
    std::vector<std::string> different;
    for (std::string& choice : choices) {
        if (std::ranges::find(different, choice) == different.end()) {
            different.push_back(std::move(choice));
        }
    }
    return {.name = "threads",
            .description = "how many threads fill and drain the slots, on any CPU",
            .kind = ParameterKind::ordered,
            .choices = std::move(different)};
}

Parameter chunk_parameter(std::vector<std::string> choices) {
    return {.name = "chunk",
            .description = "bytes of a chunk, and of a slot",
            .kind = ParameterKind::ordered,
            .choices = std::move(choices)};
}

Parameter slots_parameter(std::vector<std::string> choices) {
    return {.name = "slots",
            .description = "chunks on their way at once, for each thread or link",
            .kind = ParameterKind::ordered,
            .choices = std::move(choices)};
}

Parameter stores_parameter() {
    return {.name = "stores",
            .description =
                "how CPUs store to the destination: streaming (non-temporal, around the caches) or "
                "ordinary",
            .choices = {"streaming", "ordinary"}};
}

transfer::CopyShape shape_of(const Executor& executor, const Transfer& transfer,
                             const Machine& machine) {
    const auto number = [&](const char* name) {
        const std::string value = parameter(executor, transfer, machine, name);
        return value.empty() ? std::size_t{0} : std::stoul(value);
    };
    transfer::CopyShape shape;
    // Slots are cut from whole pages.
    constexpr std::size_t kPage = 4096;
    shape.chunk = std::max(number("chunk") / kPage * kPage, kPage);
    shape.threads = number("threads");
    shape.slots = number("slots");
    shape.streaming = parameter(executor, transfer, machine, "stores") == "streaming";
    return shape;
}

}  // namespace waywiser
