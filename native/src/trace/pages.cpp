#include "trace/pages.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace waywiser::trace {
namespace {

constexpr std::uint64_t kMostSampled = 16;

void count_node(PageSample& sample, int node) {
    for (std::size_t i = 0; i < PageSample::kNodes; ++i) {
        if (sample.pages[i] == 0) sample.nodes[i] = static_cast<std::int16_t>(node);
        if (sample.nodes[i] != node) continue;
        ++sample.pages[i];
        return;
    }
}

}  // namespace

PageSample sample_pages(const void* data, std::uint64_t bytes) {
    PageSample sample;
    if (data == nullptr || bytes == 0) return sample;
    static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const std::uint64_t first = begin / size, pages = (begin + bytes - 1) / size - first + 1;
    const std::uint64_t count = std::min(pages, kMostSampled);
    std::array<void*, kMostSampled> addresses{};
    std::array<int, kMostSampled> status{};
    for (std::uint64_t i = 0; i < count; ++i)
        addresses[i] = reinterpret_cast<void*>((first + i * pages / count) * size);
    if (syscall(SYS_move_pages, 0, count, addresses.data(), nullptr, status.data(), 0) != 0)
        return sample;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (status[i] >= 0) {
            count_node(sample, status[i]);
        } else if (status[i] == -ENOENT) {
            ++sample.absent;
        } else {
            continue;  // not memory of the host
        }
        ++sample.sampled;
    }
    return sample;
}

}  // namespace waywiser::trace
