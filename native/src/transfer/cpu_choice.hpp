// The CPUs that a program allows to the threads of a context.
#pragma once

#include <vector>

#include "waywiser/words.hpp"

namespace waywiser::transfer {

// Numbers of CPUs and of NUMA nodes; empty: any.
struct CpuChoice {
    std::vector<int> cpus;
    std::vector<int> numa_nodes;
};

// Returns the CPUs that are in the choice and that the calling thread may use, in order, and takes
// all others from the nodes of the machine: a node without CPUs gets no thread and no staging
// memory. Without a choice it returns none, and the machine stays as it is. Throws InvalidCopy if
// no CPU is left, and for numbers that no CPU and no node with memory has; NotSupported if this
// process may not bind threads.
std::vector<int> restrict_cpus(Machine& machine, const CpuChoice& choice);

}  // namespace waywiser::transfer
