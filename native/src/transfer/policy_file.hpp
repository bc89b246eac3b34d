// Finds the policy of this machine: see "Where the library finds it" in docs/policy.md.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transfer/fingerprint.hpp"
#include "transfer/policy.hpp"

namespace waywiser::transfer {

// A policy file that was found, or why none is used.
struct FoundPolicy {
    std::shared_ptr<const Policy> policy;  // nullptr: none
    std::string file;                      // of the policy
    std::string warning;  // one line about a file that could not be used; empty for none
};

// Where policies may be.
struct PolicyPlaces {
    std::string file;  // the only one if it is not empty; "off" for none
    std::vector<std::filesystem::path> folders;

    // From WAYWISER_POLICY, XDG_CONFIG_HOME and HOME.
    static PolicyPlaces of_environment();
};

// Reads a file that only its owner, this user or root, may write. Throws PolicyDamage: it does not
// exist, is no regular file, belongs to others, may be written by others, or is too large.
std::string read_trusted(const std::filesystem::path& file);

// The policy files of a folder, in the order of their names.
std::vector<std::filesystem::path> policy_files(const std::filesystem::path& folder);

// Never throws but for exhausted memory. `identity` is called at most once, for the first policy.
FoundPolicy find_policy(const PolicyPlaces& places,
                        const std::function<MachineIdentity()>& identity);

// The policy for a context of this process: of `option`, a path or "off", or if that is empty the
// one that the first context found.
FoundPolicy policy_of_process(const std::string& option, const Machine& machine);

}  // namespace waywiser::transfer
