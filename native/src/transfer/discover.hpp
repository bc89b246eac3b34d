// Finds the machine that this process may use, without hwloc: NUMA nodes from sysfs, GPUs from the
// runtime.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waywiser/words.hpp"

namespace waywiser::transfer {

// NUMA nodes with memory, each with the CPUs that this process may use there. If the system shows
// none, one node with all of the process's CPUs.
std::vector<NumaNode> numa_nodes(const std::filesystem::path& system = "/sys/devices/system/node");
// The NUMA node of a PCI device ("0000:1b:00.0"); -1 if unknown.
int numa_of_pci(const std::string& address,
                const std::filesystem::path& devices = "/sys/bus/pci/devices");
// Parses the kernel's format of CPU lists: "0-3,8".
std::vector<int> parse_cpu_list(const std::string& text);
// Numbers in ascending order in that format; "none" without any.
std::string cpu_list(const std::vector<int>& numbers);

// Creates no context on any GPU. Without a usable GPU the machine has none.
Machine discover_machine();

// The machine and the limits of this process as JSON.
std::string machine_json(const Machine& machine);

}  // namespace waywiser::transfer
