#include "waywiser/registry.hpp"

#include <algorithm>
#include <set>

#include "host/pages.hpp"
#include "unsupported_reasons.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

std::optional<std::string> memory_unsupported_reason(const Memory& memory, const Machine& machine);

// The memory must be one that the rank's process can allocate.
std::optional<std::string> rank_memory_unsupported_reason(const MemoryKind& kind,
                                                          const Memory& memory,
                                                          const Machine& machine) {
    if (auto reason = missing_place(memory.place, machine)) return reason;
    const RankPlace& rank = *machine.rank(memory.place.index);
    for (const auto& [name, own] : {std::pair{"gpu", rank.gpu}, std::pair{"numa", rank.numa}}) {
        const auto named = memory.variant.find(name);
        if (named == memory.variant.end() || named->second == std::to_string(own)) continue;
        return memory.place.text() + " does not have " + name + ":" + named->second;
    }
    const Memory local = local_memory(memory, machine);
    if (!among(kind.place_kinds(), local.place.kind)) {
        return memory.kind + " memory is not that of a rank";
    }
    if (local.on_gpu() && rank.gpu < 0) return memory.place.text() + " has no GPU";
    return memory_unsupported_reason(local, machine);
}

std::optional<std::string> memory_unsupported_reason(const Memory& memory, const Machine& machine) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    if (kind == nullptr) return "there is no kind of memory '" + memory.kind + "'";
    if (memory.place.several()) {
        for (const Memory& single : memory.each()) {
            if (auto reason = memory_unsupported_reason(single, machine)) return reason;
        }
        return std::nullopt;
    }
    if (memory.at_rank()) return rank_memory_unsupported_reason(*kind, memory, machine);
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

std::optional<std::string> ranks_unsupported_reason(const Executor& executor,
                                                    const Transfer& transfer) {
    const Path& path = transfer.path;
    const Traits traits = executor.traits();
    const bool any = path.source.at_rank() || path.destination.at_rank();
    // A library whose ranks are GPUs of one process needs no launch.
    if (!any && (traits.route != Route::between_ranks || traits.among_several)) {
        return std::nullopt;
    }
    if (any && traits.route != Route::between_ranks) {
        return executor.info().name + " moves bytes within one process";
    }
    if (!path.source.at_rank() || !path.destination.at_rank()) {
        return executor.info().name + " moves bytes between ranks";
    }
    if (path.source.place == path.destination.place && !path.source.place.several()) {
        return "both ends are of one rank";
    }
    return std::nullopt;
}

std::string not_among_several(const Executor& executor) {
    return executor.info().name + " moves bytes between two memories, not among several";
}

// Several memories at an end are for executors that move bytes among them.
std::optional<std::string> several_unsupported_reason(const Executor& executor,
                                                      const Transfer& transfer) {
    const Traits traits = executor.traits();
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        if (!side->place.several()) continue;
        if (side->at_rank() ? traits.among_ranks : traits.among_several) continue;
        return not_among_several(executor);
    }
    return std::nullopt;
}

}  // namespace

Memory local_memory(const Memory& memory, const Machine& machine) {
    if (!memory.at_rank()) return memory;
    const RankPlace* rank = machine.rank(memory.place.index);
    if (rank == nullptr) throw NotSupported(*missing_place(memory.place, machine));
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    const bool on_gpu = memory.variant.contains("gpu") ||
                        (kind != nullptr && !among(kind->place_kinds(), Place::Kind::numa));
    Memory local{memory.kind,
                 on_gpu ? Place{Place::Kind::gpu, std::max(rank->gpu, 0), {}}
                        : Place{Place::Kind::numa, rank->numa, {}},
                 memory.variant};
    local.variant.erase("gpu");
    local.variant.erase("numa");
    return local;
}

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

std::size_t MemoryKind::granule() const { return host::page_bytes(); }

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

std::vector<int> Executor::participants(const Transfer& transfer, const Machine&) const {
    std::set<int> found;
    for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
        for (const Place& place : side->place.each()) found.insert(place.index);
    }
    return {found.begin(), found.end()};
}

Memory Executor::allocated(const Transfer&, const Memory& local, const Machine&) const {
    return local;
}

Exchange Executor::exchange(const Transfer&, const Machine&) const {
    throw NotSupported(not_among_several(*this));
}

std::unique_ptr<Execution> Executor::prepare_end(const Transfer&, const Machine&, Side,
                                                 const std::vector<gpu::Stream*>&,
                                                 ranks::Messenger&) const {
    throw NotSupported(info().name + " moves bytes within one process");
}

std::unique_ptr<Execution> Executor::prepare_part(const Transfer&, const Machine&, const View&,
                                                  const View&, const std::vector<gpu::Stream*>&,
                                                  ranks::Messenger&) const {
    throw NotSupported(not_among_several(*this));
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
    if (auto reason = ranks_unsupported_reason(*executor, transfer)) return reason;
    if (auto reason = several_unsupported_reason(*executor, transfer)) return reason;
    if (auto reason = migrating_memory_unsupported_reason(*executor, transfer, machine))
        return reason;
    if (!Memories::instance()
             .find(transfer.path.destination.kind)
             ->writable(local_memory(transfer.path.destination, machine), machine)) {
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
