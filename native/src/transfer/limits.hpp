// How many threads and how much pinned memory this process may use: CPU affinity, cgroup limits,
// locked-memory limit, and other ranks of the same node.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace waywiser::transfer {

// The first line of a file; empty if it cannot be read.
std::string first_line(const std::filesystem::path& file);

// The cgroup (version 2) folder of this process below `root`; nothing if there is none.
std::optional<std::filesystem::path> own_cgroup(
    const std::filesystem::path& proc = "/proc",
    const std::filesystem::path& root = "/sys/fs/cgroup");

// CPUs that the quotas of a cgroup and of all its ancestors allow, rounded up; nothing without one.
std::optional<std::size_t> cpu_quota(const std::filesystem::path& cgroup,
                                     const std::filesystem::path& root = "/sys/fs/cgroup");

// Bytes that may still be allocated below the memory limits of a cgroup and all its ancestors;
// nothing without a limit.
std::optional<std::size_t> memory_room(const std::filesystem::path& cgroup,
                                       const std::filesystem::path& root = "/sys/fs/cgroup");

// How many processes of one job run on this node, as MPI launchers, Slurm and torchrun say in the
// environment; 1 if none does.
std::size_t local_ranks();

// The most copying threads of this process: no more than its affinity and cgroup quota allow. Ranks
// share a quota, and CPUs that several of them may use.
std::size_t thread_limit();

// Bytes that can be used before the system would have to end a process: what it says is available,
// and what cgroups leave.
std::size_t available_memory(const std::filesystem::path& proc = "/proc");

// The most bytes of pinned memory out of `wanted`: half of what cgroups leave, and what
// RLIMIT_MEMLOCK allows.
std::size_t pinned_limit(std::size_t wanted);

}  // namespace waywiser::transfer
