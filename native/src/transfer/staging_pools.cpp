#include "transfer/staging_pools.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "host/affinity.hpp"
#include "transfer/engine_options.hpp"
#include "transfer/warnings.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kSlabBytes = std::size_t{32} << 20;
// Several slabs, so that slots of one size do not use all of them.
constexpr std::size_t kFewestSlabs = 4;

std::size_t usable_nodes(const Machine& machine) {
    const auto nodes = std::ranges::count_if(
        machine.numa, [](const NumaNode& node) { return !node.cpus.empty(); });
    return std::max<std::size_t>(static_cast<std::size_t>(nodes), 1);
}

std::optional<Slot> take_or_await(Slots& pool, std::size_t bytes) {
    auto slot = pool.take(bytes);
    if (slot) return slot;
    pool.await_change();  // and a second try, so that a slot returned before this is not missed
    return pool.take(bytes);
}

}  // namespace

StagingPools::StagingPools(const Machine& machine, const EngineOptions& options, Warnings& warnings,
                           Statistics& statistics, std::function<void()> changed)
    : machine_(machine),
      warnings_(warnings),
      statistics_(statistics),
      changed_(std::move(changed)),
      cpus_(options.cpus),
      host_bytes_((options.pinned_bytes - list_table_bytes(options)) / usable_nodes(machine)),
      device_bytes_(options.relay_bytes) {}

// Others shall get some memory too. A single slot may exceed what one transfer should have.
Slot StagingPools::take_slots(Slots& pool, std::size_t each, std::size_t& slots) {
    const std::size_t most = pool.budget() / 2;
    for (std::size_t count = slots; count > 1; count /= 2) {
        // Pools have sizes that are powers of two.
        const std::size_t bytes = std::max(std::bit_floor(count * each), each);
        if (bytes > most) continue;
        if (auto memory = pool.take(bytes)) {
            slots = bytes / each;
            return std::move(*memory);
        }
    }
    slots = 1;
    auto memory = take_or_await(pool, each);
    return memory ? std::move(*memory) : Slot();
}

NumaNode StagingPools::usable_node(int node) const {
    const NumaNode* known = machine_.node(node);
    if (known == nullptr || known->cpus.empty()) {
        const auto any =
            std::ranges::find_if(machine_.numa, [](const NumaNode& n) { return !n.cpus.empty(); });
        known = any == machine_.numa.end() ? nullptr : &*any;
    }
    return known == nullptr ? NumaNode{0, cpus_.empty() ? host::allowed_cpus() : cpus_} : *known;
}

std::size_t StagingPools::host_slot_bytes() const {
    return std::bit_floor(host_bytes_ / kFewestSlabs);
}

std::size_t StagingPools::device_slot_bytes() const {
    return std::bit_floor(device_bytes_ / kFewestSlabs);
}

std::unique_ptr<Slots> StagingPools::make_host(const NumaNode& place, bool pinned, Budget& budget) {
    const auto make = [this, place, pinned](std::size_t bytes) {
        auto slab = pinned_slab(bytes, place, pinned ? pinning_device_.load() : -1,
                                [this](const std::string& why) { report_unpinned(why); });
        return pinned ? counted(std::move(slab), bytes) : std::move(slab);
    };
    return std::make_unique<Slots>(budget, std::min(kSlabBytes, host_slot_bytes()), make, changed_);
}

Slots& StagingPools::host(int node, int device) {
    const std::lock_guard lock(mutex_);
    const bool pinned = device >= 0;
    if (pinned) pinning_device_ = device;
    const NumaNode place = usable_node(node);
    const std::pair key(place.index, pinned);
    auto& own = host_[key];
    if (!own)
        own = make_host(place, pinned, host_budgets_.try_emplace(key, host_bytes_).first->second);
    return *own;
}

Slots& StagingPools::on_device(int device) {
    const std::lock_guard lock(mutex_);
    auto& own = on_device_[device];
    if (!own) {
        own = std::make_unique<Slots>(
            device_budgets_.try_emplace(device, device_bytes_).first->second, kSlabBytes,
            [device](std::size_t bytes) { return device_slab(bytes, device); }, changed_);
    }
    return *own;
}

Budget& StagingPools::device_budget(int device) {
    const std::lock_guard lock(mutex_);
    return device_budgets_.try_emplace(device, device_bytes_).first->second;
}

std::size_t StagingPools::device_bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t most = 0;
    for (const auto& [device, budget] : device_budgets_) most = std::max(most, budget.used());
    return most;
}

std::size_t StagingPools::pinned_bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [key, pool] : host_) total += key.second ? pool->bytes() : 0;
    return total;
}

void StagingPools::report_unpinned(const std::string& why) {
    is_unpinned_ = true;
    warnings_.add("staging memory could not be pinned (" + why +
                  "): copies are slower; raise the limit of locked memory (ulimit -l)");
}

}  // namespace waywiser::transfer
