#include "transfer/limits.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

#include "host/affinity.hpp"

namespace waywiser::transfer {
namespace {

namespace fs = std::filesystem;

std::optional<std::size_t> number(std::string_view text) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end == text.data()) return std::nullopt;
    return value;
}

// Calls visit(folder) for a cgroup and its ancestors up to the root.
template <class Visit>
void for_each_ancestor(const fs::path& cgroup, const fs::path& root, const Visit& visit) {
    for (fs::path folder = cgroup;; folder = folder.parent_path()) {
        visit(folder);
        if (folder == root || folder == folder.parent_path()) return;
    }
}

std::optional<std::size_t> least(std::optional<std::size_t> a, std::optional<std::size_t> b) {
    if (!a) return b;
    return b ? std::min(*a, *b) : a;
}

std::optional<std::size_t> quota_of(const fs::path& folder) {
    const std::string line = first_line(folder / "cpu.max");
    const auto space = line.find(' ');
    if (space == std::string::npos) return std::nullopt;
    const auto quota = number(std::string_view(line).substr(0, space));
    const auto period = number(std::string_view(line).substr(space + 1));
    if (!quota || !period || *period == 0) return std::nullopt;  // "max": no limit
    return std::max<std::size_t>((*quota + *period - 1) / *period, 1);
}

// The number after a name in a file of lines "name number".
std::size_t listed_number(const fs::path& file, std::string_view name) {
    std::ifstream stream(file);
    std::string word;
    for (std::size_t value = 0; stream >> word >> value;) {
        if (word == name) return value;
    }
    return 0;
}

std::optional<std::size_t> headroom_of(const fs::path& folder) {
    const auto limit = number(first_line(folder / "memory.max"));
    if (!limit) return std::nullopt;
    const std::size_t used = number(first_line(folder / "memory.current")).value_or(0);
    // The kernel frees file pages that were not used recently before an allocation fails.
    const std::size_t cached = listed_number(folder / "memory.stat", "inactive_file");
    return *limit - std::min(*limit, used - std::min(used, cached));
}

}  // namespace

std::string first_line(const std::filesystem::path& file) {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return line;
}

std::optional<fs::path> own_cgroup(const fs::path& proc, const fs::path& root) {
    std::ifstream stream(proc / "self" / "cgroup");
    for (std::string line; std::getline(stream, line);) {
        constexpr std::string_view kUnified = "0::";
        if (!line.starts_with(kUnified)) continue;
        const fs::path folder = root / fs::path(line.substr(kUnified.size())).relative_path();
        std::error_code failed;
        // In a container the path may be the host's, which is not visible here.
        return fs::is_directory(folder, failed) ? folder.lexically_normal() : root;
    }
    return std::nullopt;
}

std::optional<std::size_t> cpu_quota(const fs::path& cgroup, const fs::path& root) {
    std::optional<std::size_t> found;
    for_each_ancestor(cgroup, root, [&](const fs::path& f) { found = least(found, quota_of(f)); });
    return found;
}

std::optional<std::size_t> memory_headroom(const fs::path& cgroup, const fs::path& root) {
    std::optional<std::size_t> found;
    for_each_ancestor(cgroup, root,
                      [&](const fs::path& f) { found = least(found, headroom_of(f)); });
    return found;
}

std::size_t local_ranks() {
    constexpr std::array kVariables{
        "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",      "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE",
        "LOCAL_WORLD_SIZE",           "SLURM_NTASKS_PER_NODE"};
    for (const char* name : kVariables) {
        const char* text = std::getenv(name);
        if (text == nullptr) continue;
        if (const auto ranks = number(text); ranks && *ranks > 0) return *ranks;
    }
    return 1;
}

std::size_t thread_limit() { return thread_limit(host::allowed_cpus().size(), false); }

std::size_t thread_limit(std::size_t cpus, bool own) {
    const std::size_t allowed = std::max<std::size_t>(cpus, 1);
    const auto online = static_cast<std::size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
    const std::size_t ranks = local_ranks();
    // A launcher that bound this rank to some of the CPUs has already divided them.
    const bool divided = own || allowed * ranks <= online;
    std::size_t most = divided ? allowed : allowed / ranks;
    // A quota applies to all ranks in the cgroup.
    if (const auto cgroup = own_cgroup()) {
        if (const auto quota = cpu_quota(*cgroup)) most = std::min(most, *quota / ranks);
    }
    return std::max<std::size_t>(most, 1);
}

std::size_t available_memory(const fs::path& proc) {
    constexpr std::size_t kKiB = 1024;
    std::ifstream stream(proc / "meminfo");
    std::size_t free = std::numeric_limits<std::size_t>::max();
    for (std::string line; std::getline(stream, line);) {
        std::istringstream words(line);
        std::string name;
        std::size_t kib = 0;
        if (words >> name >> kib && name == "MemAvailable:") free = kib * kKiB;
    }
    if (const auto cgroup = own_cgroup()) {
        if (const auto headroom = memory_headroom(*cgroup)) free = std::min(free, *headroom);
    }
    return free;
}

std::size_t pinned_limit(std::size_t requested) {
    constexpr std::size_t kHeadroomFraction = 2;
    if (const auto cgroup = own_cgroup()) {
        if (const auto headroom = memory_headroom(*cgroup))
            requested = std::min(requested, *headroom / kHeadroomFraction);
    }
    rlimit limit{};
    if (geteuid() != 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY) {
        requested = std::min<std::size_t>(requested, limit.rlim_cur);
    }
    return requested;
}

}  // namespace waywiser::transfer
