// The staging memory of an engine: pinned slots at each NUMA node, and slots on GPUs.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "host/spinning_mutex.hpp"
#include "transfer/staging.hpp"
#include "transfer/statistics.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

struct EngineOptions;
class Warnings;

// Thread safe. Its lock guards the maps of pools and budgets; memory is taken, allocated and
// returned without it, under the locks of one pool at a time. The pools live as long as this. The
// machine, the warnings and the statistics must outlive it.
class StagingPools {
public:
    // `options` are completed. `changed` is called, without a lock, when memory is available again
    // for which take_slots() has asked in vain.
    StagingPools(const Machine& machine, const EngineOptions& options, Warnings& warnings,
                 Statistics& statistics, std::function<void()> changed);
    StagingPools(const StagingPools&) = delete;
    StagingPools& operator=(const StagingPools&) = delete;

    // Memory for up to so many slots of `each` bytes, or for fewer, which `slots` says afterwards.
    // Never waits: an empty one if all is used up now. Throws what allocation throws.
    [[nodiscard]] static Slot take_slots(Slots& pool, std::size_t each, std::size_t& slots);
    // The pool on the host at a node, pinned for copies of a device, or pageable without one (-1).
    Slots& host(int node, int device);
    // The pool on a device.
    Slots& on_device(int device);
    // What all that the engine allocates on a device shares.
    Budget& device_budget(int device);

    // The node, or another one whose CPUs may be used.
    [[nodiscard]] NumaNode usable_node(int node) const;
    // Sizes of slots of which each pool has several.
    [[nodiscard]] std::size_t host_slot_bytes() const;
    [[nodiscard]] std::size_t device_slot_bytes() const;

    // Allocated now, and pinned.
    [[nodiscard]] std::size_t pinned_bytes() const;
    // Allocated now on the device that has most.
    [[nodiscard]] std::size_t device_bytes() const;
    // Pinned memory of the engine that is not in a pool here is counted too.
    std::unique_ptr<Slab> counted(std::unique_ptr<Slab> slab, std::size_t bytes) {
        return statistics_.counted(std::move(slab), bytes);
    }
    // Memory of the engine could not be pinned.
    void report_unpinned(const std::string& why);
    // Whether that has happened.
    [[nodiscard]] bool is_unpinned() const { return is_unpinned_; }

private:
    [[nodiscard]] std::unique_ptr<Slots> make_host(const NumaNode& place, bool pinned,
                                                   Budget& budget);

    const Machine& machine_;
    Warnings& warnings_;
    Statistics& statistics_;
    const std::function<void()> changed_;
    const std::vector<int> cpus_;          // of the engine's threads; empty: any
    const std::size_t host_bytes_;         // at each node
    const std::size_t device_bytes_;       // on each device
    std::atomic<int> pinning_device_{-1};  // the GPU in whose context memory is pinned
    std::atomic<bool> is_unpinned_{false};

    mutable host::SpinningMutex mutex_;
    std::map<std::pair<int, bool>, Budget> host_budgets_;  // by node, pinned or not
    std::map<int, Budget> device_budgets_;
    std::map<std::pair<int, bool>, std::unique_ptr<Slots>> host_;
    std::map<int, std::unique_ptr<Slots>> on_device_;
};

}  // namespace waywiser::transfer
