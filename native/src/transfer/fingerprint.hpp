// What this machine is known by in policies. The same rules as in
// python/waywiser/machine/hypervisor.py and system.py; tests/machine/fingerprints.json holds both
// to them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "transfer/policy.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

// Readers of the system's files below `root`. Empty or 0 if they do not say.
std::string hypervisor_name(const std::filesystem::path& root = "/");
std::string cpu_model(const std::filesystem::path& root = "/");
std::uint64_t driver_major(const std::filesystem::path& root = "/");
// What the link of a GPU may be called: by what the GPU supports, and by what it and the bridge
// above it support. Empty if unknown.
std::vector<std::string> gpu_links(const std::string& pci, const std::filesystem::path& root = "/");

struct MachineIdentity {
    Fingerprint fingerprint;
    std::vector<std::string> links;  // other names of its GPU's link too
};
// Of this machine and the first GPU that this process may use. Never throws for unreadable files.
MachineIdentity identify(const Machine& machine, const std::filesystem::path& root = "/");

}  // namespace waywiser::transfer
