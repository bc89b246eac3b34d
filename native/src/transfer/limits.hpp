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

// The cgroup (version 2) folder of this process below `root`; nullopt if there is none.
std::optional<std::filesystem::path> own_cgroup(
    const std::filesystem::path& proc = "/proc",
    const std::filesystem::path& root = "/sys/fs/cgroup");

// CPUs that the quotas of a cgroup and all its ancestors allow, rounded up; nullopt without a
// quota.
std::optional<std::size_t> cpu_quota(const std::filesystem::path& cgroup,
                                     const std::filesystem::path& root = "/sys/fs/cgroup");

// Bytes that may still be allocated below the memory limits of a cgroup and all its ancestors;
// nullopt without a limit.
std::optional<std::size_t> memory_headroom(const std::filesystem::path& cgroup,
                                           const std::filesystem::path& root = "/sys/fs/cgroup");

// Number of processes of one job on this node, from the environment of MPI launchers, Slurm or
// torchrun; 1 if unknown.
std::size_t local_ranks();

// Maximum number of copying threads of this process, limited by its affinity and cgroup quota.
// Ranks share a quota, and CPUs that several of them may use.
std::size_t thread_limit();
// The same for threads that run on so many CPUs, which no other rank uses if they are its `own`.
std::size_t thread_limit(std::size_t cpus, bool own);

// Bytes that can be used before the system would have to kill a process: what it reports as
// available, limited by cgroups.
std::size_t available_memory(const std::filesystem::path& proc = "/proc");

// Maximum bytes of pinned memory out of `requested`: half of what cgroups leave, and what
// RLIMIT_MEMLOCK allows.
std::size_t pinned_limit(std::size_t requested);

}  // namespace waywiser::transfer
