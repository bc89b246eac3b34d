#include "waywiser/registry.hpp"

#include <algorithm>

#include "unsupported_reasons.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

std::optional<std::string> memory_unsupported_reason(const Memory& memory, const Machine& machine) {
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
    return kind->unsupported_reason(memory, machine);
}

// Migrating memory can only be moved in place.
std::optional<std::string> migrating_memory_unsupported_reason(const Executor& executor,
                                                               const Transfer& transfer,
                                                               const Machine& machine) {
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        const MemoryKind& kind = *Memories::instance().find(side->kind);
        if (kind.migrates() && !executor.in_place(transfer, machine)) {
            return side->kind +
                   " memory migrates to what accesses it: use an executor that moves it in place";
        }
    }
    return std::nullopt;
}

}  // namespace

template <>
Registry<MemoryKind>& Registry<MemoryKind>::instance() {
    static Registry registry;
    return registry;
}

template <>
Registry<Executor>& Registry<Executor>::instance() {
    static Registry registry;
    return registry;
}

std::optional<std::string> MemoryKind::unsupported_reason(const Memory&, const Machine&) const {
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

Requirements Executor::requirements(const Transfer& transfer, const Machine& machine) const {
    Requirements needs;
    const Path& path = transfer.path;
    const bool between = path.source.on_gpu() && path.destination.on_gpu();
    for (const Memory* side : {&path.source, &path.destination}) {
        if (side->on_gpu() && !between) needs.host_links.push_back(side->place.index);
    }
    if (between && path.source.place != path.destination.place) {
        const std::pair pair{path.source.place.index, path.destination.place.index};
        if (peer_access(transfer, machine) == true) {
            needs.peers.push_back(pair);
        } else {
            needs.host_links = {pair.first, pair.second};
        }
    }
    const std::string threads = parameter(*this, transfer, machine, "threads");
    if (!threads.empty()) needs.threads = std::stoul(threads);
    return needs;
}

std::optional<bool> Executor::peer_access(const Transfer&, const Machine&) const {
    return std::nullopt;
}

std::string parameter(const Executor& executor, const Transfer& transfer, const Machine& machine,
                      const std::string& name) {
    return setting(executor.info().name, executor.parameters(transfer, machine),
                   transfer.parameters, name);
}

std::optional<std::string> unsupported_reason(const Transfer& transfer, const Machine& machine) {
    const Executor* executor = Executors::instance().find(transfer.path.executor);
    if (executor == nullptr) return "there is no executor '" + transfer.path.executor + "'";
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        if (auto reason = memory_unsupported_reason(*side, machine)) return reason;
    }
    if (auto reason = migrating_memory_unsupported_reason(*executor, transfer, machine))
        return reason;
    if (!Memories::instance()
             .find(transfer.path.destination.kind)
             ->writable(transfer.path.destination, machine)) {
        return transfer.path.destination.place.text() + " is only read";
    }
    if (!executor->serves(transfer.layout.kind)) {
        return executor->info().name + " does not move a " + transfer.layout.text();
    }
    if (auto reason = layout_unsupported_reason(transfer)) return reason;
    if (auto reason = executor->unsupported_reason(transfer, machine)) return reason;
    return bad_setting(executor->info().name, executor->parameters(transfer, machine),
                       transfer.parameters);
}

}  // namespace waywiser
