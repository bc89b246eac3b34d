#include "executor/migration.hpp"

#include <cstdint>

#include "waywiser/memory.hpp"

namespace waywiser {

std::optional<std::string> migration_unsupported_reason(const Path& path) {
    for (const Memory* memory : {&path.source, &path.destination}) {
        const MemoryKind* kind = Memories::instance().find(memory->kind);
        if (kind == nullptr || !kind->migrates()) {
            return memory->kind + " memory stays where it is: only managed memory migrates";
        }
    }
    if (path.source.place == path.destination.place) return "the bytes are there already";
    if (path.source.on_host() && path.destination.on_host()) {
        return "managed memory migrates from or to a GPU, not between NUMA nodes";
    }
    const std::string advice = advice_of(path.destination);
    if (advice != "none" && advice != advice_of(path.source)) {
        return "both sides are one buffer: give its advice at the source";
    }
    return std::nullopt;
}

std::string advice_of(const Memory& memory) {
    const auto it = memory.variant.find("advice");
    return it == memory.variant.end() ? "none" : it->second;
}

gpu::Location location_of(const Memory& memory) {
    if (memory.on_gpu()) return {.device = memory.place.index};
    return {.node = memory.place.index};
}

int migration_gpu(const Path& path) {
    return (path.destination.on_gpu() ? path.destination : path.source).place.index;
}

void require_migration(const Path& path) {
    for (const Memory* memory : {&path.source, &path.destination}) {
        if (memory->on_gpu() && !gpu::device(memory->place.index).concurrent_managed) {
            throw NotSupported(memory->place.text() +
                               " does not move managed memory page by page (no concurrent managed "
                               "access)");
        }
    }
}

Home::Home(const Path& path)
    : location_(location_of(path.source)),
      read_mostly_(advice_of(path.source) == "read-mostly"),
      stream_(path.source.on_gpu() ? path.source.place.index : path.destination.place.index) {}

void Home::restore(const View& view) const {
    const std::size_t granule = Memories::instance().find(view.memory->kind)->granule();
    const std::size_t before = reinterpret_cast<std::uintptr_t>(view.data) % granule;
    std::byte* first = view.data - before;
    const std::size_t bytes = (before + view.bytes + granule - 1) / granule * granule;
    // The other side would keep its copy of read-mostly memory and have nothing to fetch.
    if (read_mostly_) gpu::advise(first, bytes, gpu::Advice::not_read_mostly, location_);
    gpu::prefetch_async(first, bytes, location_, stream_);
    stream_.synchronize();
    if (read_mostly_) gpu::advise(first, bytes, gpu::Advice::read_mostly, location_);
}

}  // namespace waywiser
