#include "fuzz/contexts.hpp"

#include <algorithm>
#include <stdexcept>

namespace waywiser::fuzz {
namespace {

void use_relays(ContextOptions& options, int gpus) {
    for (int gpu = 0; gpu < gpus; ++gpu) options.relays.push_back(gpu);
}

}  // namespace

const std::vector<ContextKind>& context_kinds() {
    static const std::vector<ContextKind> all = {
        {"default", [](ContextOptions&, int) {}},
        {"plain", [](ContextOptions& options, int) { options.plain = true; }},
        {"spin", [](ContextOptions& options, int) { options.spin_seconds = 5e-4; }},
        {"spin_long", [](ContextOptions& options, int) { options.spin_seconds = 0.05; }},
        {"relays", use_relays},
        {"small_relays",
         [](ContextOptions& options, int gpus) {
             use_relays(options, gpus);
             options.relay_bytes = kMiB;
         }},
        {"queued", [](ContextOptions& options, int) { options.max_queued_bytes = 512 * kKiB; }},
        {"queued_relays",
         [](ContextOptions& options, int gpus) {
             use_relays(options, gpus);
             options.max_queued_bytes = 2 * kMiB;
         }},
        {"one_thread",
         [](ContextOptions& options, int) {
             options.threads = 1;
             options.pinned_bytes = kMiB;
         }},
        {"little_staging", [](ContextOptions& options, int) { options.pinned_bytes = 64 * kKiB; }},
        {"no_peers", [](ContextOptions& options, int) { options.peer_access = false; }},
        {"multiprocessors", [](ContextOptions& options, int) { options.list_multiprocessors = 2; }},
        {"little_gpu_memory",
         [](ContextOptions& options, int) { options.relay_bytes = 256 * kKiB; }},
    };
    return all;
}

Contexts::Contexts(std::size_t count, int gpus, const std::vector<std::string>& kinds, Draw& draw)
    : gpus_(gpus) {
    for (const ContextKind& kind : context_kinds()) {
        if (kinds.empty() || std::ranges::find(kinds, kind.name) != kinds.end()) {
            kinds_.push_back(&kind);
        }
    }
    if (kinds_.empty()) throw std::invalid_argument("there is no such kind of context");
    for (std::size_t i = 0; i < count; ++i) {
        slots_.push_back(std::make_unique<Slot>());
        make(*slots_.back(), draw);
    }
}

Contexts::Use Contexts::use(std::size_t number) const {
    const Slot& slot = *slots_[number];
    Use use;
    use.lock_ = std::shared_lock(slot.mutex);
    use.context_ = slot.context ? slot.context->get() : nullptr;
    use.kind_ = slot.kind;
    return use;
}

waywiser_status Contexts::make(Slot& slot, Draw& draw) const {
    const ContextKind& kind = *draw.of(kinds_);
    ContextOptions options;
    options.threads = draw.between(1, 4);
    options.pinned_bytes = draw.between(1, 24) * kMiB;
    options.policy = "off";
    options.quiet = true;
    kind.set(options, gpus_);
    slot.kind = kind.name;
    try {
        slot.context = std::make_unique<Context>(options);
    } catch (const TransferError& error) {
        return error.status();
    }
    return WAYWISER_OK;
}

waywiser_status Contexts::replace(std::size_t number, Draw& draw) {
    Slot& slot = *slots_[number];
    const std::unique_lock lock(slot.mutex);
    ++slot.releases;
    slot.context.reset();
    return make(slot, draw);
}

void Contexts::release_all() {
    for (auto& slot : slots_) {
        const std::unique_lock lock(slot->mutex);
        slot->context.reset();
    }
}

}  // namespace waywiser::fuzz
