#include "executor/file_path.hpp"

#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// Whether memory is accessed by reading and writing, not by an address.
bool is_file(const Memory& memory) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    return memory.in_file() && kind != nullptr && !kind->cpu_accessible();
}

}  // namespace

FilePath file_path(const Path& path) {
    const bool writing = is_file(path.destination);
    return {writing ? path.destination : path.source, writing ? path.source : path.destination,
            writing};
}

std::optional<std::string> FileExecutor::unsupported_reason(const Transfer& transfer,
                                                            const Machine& machine) const {
    const Path& path = transfer.path;
    if (path.source.in_file() && path.destination.in_file()) return "both ends are files";
    if (!is_file(path.source) && !is_file(path.destination)) return "neither end is a file";
    const Memory& memory = file_path(path).memory;
    if (memory.on_gpu()) return "a file does not reach the memory of a GPU but through the host's";
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    if (kind == nullptr || !kind->cpu_accessible()) {
        return "reads and writes of files do not reach " + memory.kind + " memory";
    }
    if (memory.kind == "write-combined") {
        return "CPUs read write-combined memory slowly: use pinned memory for files";
    }
    if (machine.cpus(memory.place).empty()) {
        return "no CPU of " + memory.place.text() + " may be used";
    }
    return std::nullopt;
}

std::vector<Parameter> FileExecutor::all_parameters() const {
    return {{.name = "block",
             .description = "bytes of one request",
             .kind = ParameterKind::ordered,
             .choices = {"1048576", "131072", "4194304"}},
            {.name = "depth",
             .description = "requests under way at once",
             .kind = ParameterKind::ordered,
             .choices = depths_},
            {.name = "sync",
             .description =
                 "the time of a write ends when the device has the bytes for good (fdatasync), or "
                 "when the calls return",
             .choices = {"yes", "no"}}};
}

std::vector<Parameter> FileExecutor::parameters(const Transfer& transfer, const Machine&) const {
    std::vector<Parameter> known = all_parameters();
    if (!transfer.path.destination.in_file()) known.pop_back();
    return known;
}

std::unique_ptr<host::BlockIo> block_io(const Executor& executor, const Transfer& transfer,
                                        const Machine& machine) {
    const auto number = [&](const char* name) {
        return std::stoul(parameter(executor, transfer, machine, name));
    };
    const std::vector<int> cpus = machine.cpus(file_path(transfer.path).memory.place);
    return host::by_threads(cpus, number("depth"), number("block"), transfer.bytes);
}

host::FileRange file_range(const View& source, const View& destination) {
    const bool writing = destination.data == nullptr;
    const View& file = writing ? destination : source;
    return {.file = file.file,
            .writing = writing,
            .memory = (writing ? source : destination).data,
            .bytes = source.bytes,
            .at = file.offset};
}

}  // namespace waywiser
