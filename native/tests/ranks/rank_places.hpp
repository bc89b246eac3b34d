// Ranks of a launch on this machine, for tests.
#pragma once

#include "conformance.hpp"

namespace waywiser::test {

// One node, whose CPUs all ranks use; `gpu_of(rank)` is the GPU of each.
template <class GpuOf>
Machine with_ranks(int ranks, const GpuOf& gpu_of) {
    Machine machine = this_machine();
    for (int rank = 0; rank < ranks; ++rank) {
        const NumaNode& node = machine.numa.front();
        machine.ranks.push_back({rank, node.cpus, node.index, gpu_of(rank)});
    }
    return machine;
}

}  // namespace waywiser::test
