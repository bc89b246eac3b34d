#include "pages.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <sstream>

#include "node_memory.hpp"
#include "parallel.hpp"
#include "waywiser/huge_page.hpp"

namespace waywiser::host {
namespace {

constexpr std::size_t kMostSamples = 512;  // enough to see one percent, few enough to be fast
constexpr int kMostNodes = 1024;
constexpr int kPreferPolicy = 1;  // MPOL_PREFERRED of the kernel's mempolicy.h
constexpr int kBindPolicy = 2;    // MPOL_BIND

// Bytes from the start of a range, in whole huge pages.
std::size_t in_huge_pages(std::size_t bytes, std::size_t huge_page) {
    const std::size_t beside = (huge_page - bytes % huge_page) % huge_page;
    return beside < kSmallHugePage ? bytes + beside : bytes / huge_page * huge_page;
}

std::string bind_to(std::byte* data, std::size_t bytes, int node, int policy) {
    if (node < 0 || node >= kMostNodes) return "node " + std::to_string(node) + " is out of range";
    constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
    std::array<unsigned long, kMostNodes / kBits> mask{};
    const auto bit = static_cast<std::size_t>(node);
    mask[bit / kBits] |= 1UL << (bit % kBits);
    if (syscall(SYS_mbind, data, bytes, policy, mask.data(), kMostNodes + 1, 0) == 0) return {};
    return std::string("mbind: ") + std::strerror(errno);
}

// Writes one byte in every page from CPUs of the node, so that the pages are allocated there.
void touch(std::byte* data, std::size_t bytes, const std::vector<int>& cpus) {
    const std::size_t step = page_bytes();
    parallel(bytes, cpus, [=](std::size_t from, std::size_t to) {
        for (std::size_t at = from; at < to; at += step) data[at] = std::byte{0};
    });
}

// Linux 6.7 and later: the request PAGEMAP_SCAN of linux/fs.h, which older headers lack.
struct ScanRequest {
    std::uint64_t size = sizeof(ScanRequest);
    std::uint64_t flags = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t walk_end =
        0;  // where the kernel stopped: it may find more than there is space for
    std::uint64_t found = 0;
    std::uint64_t most_found = 0;
    std::uint64_t most_pages = 0;
    std::uint64_t inverted = 0;
    std::uint64_t required = 0;
    std::uint64_t any_of = 0;
    std::uint64_t returned = 0;
};
struct ScannedRange {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t categories;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t kIsHuge = 1 << 6;

// Bytes of a range that are in huge pages, if the kernel can search a range.
std::optional<std::size_t> scan_huge_bytes(const std::byte* data, std::size_t bytes) {
    const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return std::nullopt;
    std::array<ScannedRange, 64> ranges{};
    const auto first = reinterpret_cast<std::uintptr_t>(data);
    ScanRequest request{.start = first, .end = first + bytes, .walk_end = first};
    request.found = reinterpret_cast<std::uintptr_t>(ranges.data());
    request.most_found = ranges.size();
    request.required = request.returned = kIsHuge;
    std::optional<std::size_t> huge = 0;
    while (huge && request.walk_end < request.end) {
        request.start = request.walk_end;
        const int found = ioctl(pagemap, kScan, &request);
        if (found < 0 || request.walk_end <= request.start) {
            huge.reset();
            break;
        }
        for (int i = 0; i < found; ++i) *huge += ranges[i].end - ranges[i].start;
    }
    close(pagemap);
    return huge;
}

// The same for all mappings that the range is in, from the kernel's statistics. These are of the
// whole process: they take the longer, the more memory it has.
std::size_t huge_bytes_of_mappings(const std::byte* data, std::size_t bytes) {
    std::ifstream smaps("/proc/self/smaps");
    const auto first = reinterpret_cast<std::uintptr_t>(data);
    std::size_t huge_kib = 0;
    bool inside = false;
    for (std::string line; std::getline(smaps, line);) {
        std::uintptr_t from = 0;
        std::uintptr_t to = 0;
        char dash = 0;
        std::istringstream fields(line);
        if (fields >> std::hex >> from >> dash >> to && dash == '-') {
            inside = from < first + bytes && to > first;
        } else if (inside && line.starts_with("AnonHugePages:")) {
            huge_kib += std::stoul(line.substr(std::strlen("AnonHugePages:")));
        }
    }
    return huge_kib * 1024;
}

double huge_fraction(const std::byte* data, std::size_t bytes) {
    const auto scanned = scan_huge_bytes(data, bytes);
    const auto huge = scanned ? *scanned : huge_bytes_of_mappings(data, bytes);
    return std::min(1.0, static_cast<double>(huge) / static_cast<double>(bytes));
}

}  // namespace

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

Placement placement_of(const std::byte* data, std::size_t bytes, int node) {
    const std::size_t step = page_bytes();
    const auto base = reinterpret_cast<std::uintptr_t>(data) & ~(step - 1);
    const std::size_t pages = (bytes + step - 1) / step;
    const std::size_t samples = std::min(pages, kMostSamples);
    std::vector<void*> addresses(samples);
    std::vector<int> where(samples, -1);
    for (std::size_t i = 0; i < samples; ++i) {
        addresses[i] = reinterpret_cast<void*>(base + i * pages / samples * step);
    }
    Placement placement;
    if (syscall(SYS_move_pages, 0, samples, addresses.data(), nullptr, where.data(), 0) != 0) {
        placement.detail = std::string("move_pages: ") + std::strerror(errno);
        return placement;
    }
    std::map<int, std::size_t> counts;
    for (const int w : where) ++counts[w];
    std::size_t known = 0;
    for (const auto& [at, count] : counts) {
        if (at >= 0) known += count;
        if (at == node) continue;
        if (!placement.detail.empty()) placement.detail += ", ";
        placement.detail += std::to_string(count) + " of " + std::to_string(samples) + " pages " +
                            (at >= 0 ? "on node " + std::to_string(at)
                                     : std::string("unknown: ") + std::strerror(-at));
    }
    if (known == 0) return placement;
    placement.fraction_on_place = static_cast<double>(counts[node]) / static_cast<double>(known);
    placement.state =
        counts[node] == known ? Placement::State::verified : Placement::State::misplaced;
    return placement;
}

Pages::Pages(std::size_t bytes, const NumaNode& node, PageSize size, Placing placing)
    : bytes_(bytes) {
    int policy = kBindPolicy;
    if (placing == Placing::looked_at) {
        require_free_on_node(node.index, bytes);
    } else if (const auto free = free_on_node(node.index); free && bytes > *free) {
        policy = kPreferPolicy;  // the rest of the machine may have space
    }
    const std::size_t huge_page = huge_page_bytes();
    if (bytes > std::numeric_limits<std::size_t>::max() - 3 * huge_page) throw std::bad_alloc();
    const std::size_t aligned =
        (std::max<std::size_t>(bytes, 1) + huge_page - 1) & ~(huge_page - 1);
    mapped_bytes_ = aligned + huge_page;  // space to start on a huge page
    void* mapping = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<std::byte*>(mapping);
    const auto start =
        (reinterpret_cast<std::uintptr_t>(mapping) + huge_page - 1) & ~(huge_page - 1);
    data_ = reinterpret_cast<std::byte*>(start);
    const std::size_t huge = size == PageSize::huge ? in_huge_pages(bytes, huge_page) : 0;
    if (huge > 0) madvise(data_, huge, MADV_HUGEPAGE);
    if (huge < aligned) madvise(data_ + huge, aligned - huge, MADV_NOHUGEPAGE);
    const std::string binding_error = bind_to(data_, aligned, node.index, policy);
    touch(data_, bytes_, node.cpus);
    if (placing == Placing::trusted) return;
    placement_ = placement_of(data_, bytes_, node.index);
    if (size == PageSize::huge) placement_.fraction_huge = huge_fraction(data_, bytes_);
    if (placement_.state == Placement::State::unverified && !binding_error.empty()) {
        placement_.detail += (placement_.detail.empty() ? "" : "; ") + binding_error;
    }
}

Pages::~Pages() {
    if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

}  // namespace waywiser::host
