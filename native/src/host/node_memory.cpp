#include "host/node_memory.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <sstream>
#include <utility>

namespace waywiser::host {
namespace {

constexpr std::size_t kKiB = 1024;

// What is left to others: the kernel's own reserve and what starts meanwhile.
constexpr std::size_t kLeastNodeMargin = std::size_t{32} << 20;
constexpr std::size_t kNodeMarginFraction = 64;

struct NodeMemory {
    std::size_t total = 0;
    std::size_t free = 0;
    std::size_t file_pages = 0;
    std::size_t not_clean = 0;  // file pages that cannot be dropped at once
};

constexpr unsigned long kAllowedNodes = 1 << 2;  // MPOL_F_MEMS_ALLOWED of the kernel's mempolicy.h
constexpr std::size_t kNodeBits = 1024;

// Lines "Node 1 MemFree: 1234 kB".
NodeMemory read(std::istream& lines) {
    NodeMemory found;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word;
        std::string name;
        std::size_t kib = 0;
        if (!(words >> word >> word >> name >> kib)) continue;
        const std::size_t bytes = kib * kKiB;
        if (name == "MemTotal:") {
            found.total = bytes;
        } else if (name == "MemFree:") {
            found.free = bytes;
        } else if (name == "Active(file):" || name == "Inactive(file):") {
            found.file_pages += bytes;
        } else if (name == "Dirty:" || name == "Writeback:" || name == "Mapped:") {
            found.not_clean += bytes;
        }
    }
    return found;
}

}  // namespace

bool may_use_node(int node) {
    constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
    std::array<unsigned long, kNodeBits / kBits> allowed{};
    const auto bit = static_cast<std::size_t>(node);
    if (bit >= kNodeBits || syscall(SYS_get_mempolicy, nullptr, allowed.data(), kNodeBits, nullptr,
                                    kAllowedNodes) != 0) {
        return true;
    }
    return (allowed[bit / kBits] >> (bit % kBits) & 1) != 0;
}

std::optional<std::size_t> free_on_node(int node, const std::filesystem::path& nodes) {
    std::ifstream stream(nodes / ("node" + std::to_string(node)) / "meminfo");
    const NodeMemory found = read(stream);
    if (found.total == 0) return std::nullopt;
    const std::size_t margin = std::max(kLeastNodeMargin, found.total / kNodeMarginFraction);
    const std::size_t clean = (found.file_pages - std::min(found.file_pages, found.not_clean)) / 2;
    return found.free + clean - std::min(found.free + clean, margin);
}

void require_free_on_node(int node, std::size_t bytes) {
    const auto free = free_on_node(node);
    if (!free || bytes <= *free) return;
    throw NodeFull(std::to_string(bytes >> 20) + " MiB do not fit on numa:" + std::to_string(node) +
                   ", where " + std::to_string(*free >> 20) +
                   " MiB are free: free memory on that node, or use smaller sizes");
}

}  // namespace waywiser::host
