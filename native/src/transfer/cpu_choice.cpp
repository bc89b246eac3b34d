#include "transfer/cpu_choice.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "host/affinity.hpp"
#include "host/start_thread.hpp"
#include "transfer/discover.hpp"
#include "transfer/side.hpp"
#include "transfer/signals_blocked.hpp"

namespace waywiser::transfer {
namespace {

std::vector<int> in_order(std::vector<int> numbers) {
    std::ranges::sort(numbers);
    const auto rest = std::ranges::unique(numbers);
    numbers.erase(rest.begin(), rest.end());
    return numbers;
}

std::vector<int> common(const std::vector<int>& one, const std::vector<int>& other) {
    std::vector<int> both;
    std::ranges::set_intersection(one, other, std::back_inserter(both));
    return both;
}

std::vector<int> cpus_of_nodes(const Machine& machine, const std::vector<int>& nodes) {
    std::vector<int> cpus;
    for (const int index : nodes) {
        const NumaNode* const node = machine.node(index);
        if (node == nullptr) {
            std::vector<int> known;
            for (const NumaNode& each : machine.numa) known.push_back(each.index);
            throw InvalidCopy("numa_nodes has " + std::to_string(index) +
                              ", and this machine has memory at the NUMA nodes " +
                              cpu_list(in_order(known)) + ": pass numbers of these");
        }
        cpus.insert(cpus.end(), node->cpus.begin(), node->cpus.end());
    }
    return in_order(cpus);
}

// Containers may forbid it. Tried by a thread that ends, so that the caller's affinity stays.
bool can_run_on(const std::vector<int>& cpus) {
    bool can = true;
    try {
        const SignalsBlocked blocked;
        host::start_thread([&] { can = host::run_on(cpus); }).join();
    } catch (const host::NoThread&) {
        return true;  // unknown: the threads of the context cannot be started either
    }
    return can;
}

}  // namespace

std::vector<int> restrict_cpus(Machine& machine, const CpuChoice& choice) {
    if (choice.cpus.empty() && choice.numa_nodes.empty()) return {};
    const std::vector<int> allowed = host::allowed_cpus();
    const std::vector<int> cpus = in_order(choice.cpus);
    const std::vector<int> nodes = in_order(choice.numa_nodes);
    if (!cpus.empty() && cpus.front() < 0) {
        throw InvalidCopy("cpus has " + std::to_string(cpus.front()) +
                          ", which is no CPU: pass numbers from 0 on");
    }
    std::vector<int> left = allowed;
    if (!nodes.empty()) left = common(left, cpus_of_nodes(machine, nodes));
    if (!cpus.empty()) left = common(left, cpus);
    if (left.empty()) {
        throw InvalidCopy("no CPU is left for the threads of the context: " +
                          (cpus.empty() ? "" : "cpus are " + cpu_list(cpus) + ", ") +
                          (nodes.empty() ? "" : "numa_nodes are " + cpu_list(nodes) + ", ") +
                          "and the calling thread may use the CPUs " + cpu_list(allowed) +
                          ": pass some of these, or start the program with others (taskset -c)");
    }
    if (!can_run_on(left)) {
        throw NotSupported("threads cannot be bound to the CPUs " + cpu_list(left) +
                           ", since this process may not set the affinity of threads: omit cpus "
                           "and numa_nodes, or allow sched_setaffinity in the container");
    }
    for (NumaNode& node : machine.numa) node.cpus = common(node.cpus, left);
    return left;
}

}  // namespace waywiser::transfer
