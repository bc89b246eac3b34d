#include "executor/reach.hpp"

#include <algorithm>

#include "gpu/gpu.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

bool sees(const GpuPlace* from, const GpuPlace* to) {
    return from != nullptr && to != nullptr &&
           std::ranges::find(from->peers, to->index) != from->peers.end();
}

}  // namespace

bool known_to_gpus(const Memory& memory) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    return kind != nullptr && kind->needs_gpu();
}

bool between_gpus(const Path& path) {
    return path.source.on_gpu() && path.destination.on_gpu() &&
           path.source.place != path.destination.place;
}

bool direct_access(const Path& path, const Machine& machine) {
    return direct_access(path.source.place.index, path.destination.place.index, machine);
}

bool direct_access(int one, int other, const Machine& machine) {
    const GpuPlace* from = machine.gpu(one);
    const GpuPlace* to = machine.gpu(other);
    return sees(from, to) && sees(to, from);
}

std::optional<std::string> reach_unsupported_reason(const Memory& memory, int gpu,
                                                    const Machine& machine) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    if (memory.on_gpu()) {
        if (memory.place.index == gpu || kind == nullptr) return std::nullopt;
        const auto reason = kind->peer_unsupported_reason(memory);
        if (!reason) return std::nullopt;
        return *reason + ", not of gpu:" + std::to_string(gpu);
    }
    if (known_to_gpus(memory)) return std::nullopt;
    if (kind == nullptr || !kind->cpu_accessible()) {
        return "kernels of a GPU cannot address " + memory.kind + " memory";
    }
    const GpuPlace* place = machine.gpu(gpu);
    if (place != nullptr && place->pageable_access) return std::nullopt;
    return "kernels of gpu:" + std::to_string(gpu) + " cannot address " + memory.kind +
           " memory: no pageable memory access (HMM or ATS)";
}

std::optional<std::string> copy_unsupported_reason(const Memory& memory) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    if (memory.in_file() && (kind == nullptr || !kind->cpu_accessible())) {
        return "the runtime's copies do not reach files";
    }
    return std::nullopt;
}

std::byte* reached_at(const View& view, int gpu) {
    const bool page_locked = !view.memory->on_gpu() && known_to_gpus(*view.memory);
    return page_locked ? gpu::device_address(view.data, gpu) : view.data;
}

}  // namespace waywiser
