#include "transfer/pinned_memory.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "host/affinity.hpp"
#include "host/node_memory.hpp"
#include "host/pages.hpp"
#include "transfer/discover.hpp"
#include "transfer/limits.hpp"
#include "transfer/page_locking.hpp"
#include "transfer/process_state.hpp"

namespace waywiser::transfer {
namespace {

struct PinnedMemory {
    PinnedMemory(std::size_t bytes, const NumaNode& node)
        : pages(bytes, node, host::PageSize::huge, host::Placing::trusted) {}

    host::Pages pages;
    std::vector<gpu::Registration> registrations;
    pid_t process = getpid();
    std::uint64_t released = 0;  // sequence number of its release; 0: the program still has it
};

// Never destroyed: arrays may be freed while the process ends. See lock_process_tables().
struct All {
    std::map<void*, std::unique_ptr<PinnedMemory>> memory;
    std::uint64_t releases = 0;
};

All& all() {
    static All& known = *new All();
    return known;
}

int node_of_this_thread() {
    unsigned cpu = 0;
    unsigned node = 0;
    if (syscall(SYS_getcpu, &cpu, &node, nullptr) != 0) return -1;
    return static_cast<int>(node);
}

NumaNode node_for(int numa) {
    const std::vector<NumaNode> nodes = numa_nodes();
    if (numa >= 0) {
        const auto named = std::ranges::find(nodes, numa, &NumaNode::index);
        if (named == nodes.end()) {
            throw NotSupported("this machine has no NUMA node " + std::to_string(numa) +
                               " with memory: pass the index of a node that it has");
        }
        if (!host::may_use_node(numa)) {
            throw NotSupported("this process may not use the memory of NUMA node " +
                               std::to_string(numa) +
                               " (Mems_allowed in /proc/self/status): pass another node");
        }
        return *named;
    }
    const auto here = std::ranges::find(nodes, node_of_this_thread(), &NumaNode::index);
    return here == nodes.end() ? nodes.front() : *here;
}

// False if that cannot be determined now.
bool gpus_have_finished() noexcept {
    try {
        wait_for_gpus();
        return true;
    } catch (...) {
        return false;
    }
}

// Frees memory that programs have released, if no GPU uses it any more; else a later call does.
// Does nothing in a forked child, since all is the parent's.
void free_released() noexcept {
    std::uint64_t last = 0;
    const auto can_go = [&last](const auto& entry) {
        const PinnedMemory& memory = *entry.second;
        return memory.released != 0 && memory.released <= last && memory.process == getpid();
    };
    {
        const auto lock = lock_process_tables();
        last = all().releases;  // memory that is released later may be in use again
        if (std::ranges::none_of(all().memory, can_go)) return;
    }
    if (!gpus_have_finished()) return;
    for (;;) {
        std::unique_ptr<PinnedMemory> memory;  // unpinned after the lock
        const auto lock = lock_process_tables();
        const auto found = std::ranges::find_if(all().memory, can_go);
        if (found == all().memory.end()) return;
        memory = std::move(found->second);
        all().memory.erase(found);
    }
}

}  // namespace

void* pinned_allocate(std::size_t bytes, int numa) {
    free_released();
    bytes = std::max<std::size_t>(bytes, 1);
    // The pages are touched: without enough memory the system would kill a process instead.
    if (bytes > available_memory()) throw std::bad_alloc();
    auto made = std::make_unique<PinnedMemory>(bytes, node_for(numa));
    if (gpu::device_count() > 0) made->registrations = lock_pages(made->pages.data(), bytes);
    void* const data = made->pages.data();
    const auto lock = lock_process_tables();
    all().memory.emplace(data, std::move(made));
    return data;
}

void pinned_free(void* data) noexcept {
    {
        const auto lock = lock_process_tables();
        const auto known = all().memory.find(data);
        if (known == all().memory.end()) return;
        if (known->second->released == 0) known->second->released = ++all().releases;
    }
    free_released();
}

}  // namespace waywiser::transfer
