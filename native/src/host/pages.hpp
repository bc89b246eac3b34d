// Anonymous host memory bound to a NUMA node, and the real placement of its pages.
//
// Uses the system calls directly: libnuma is not needed, and if a container forbids them, the error
// is reported and not fatal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser::host {

std::size_t page_bytes();  // of a base page

enum class PageSize { standard, huge };
// Whether to query the kernel for the placement, which takes milliseconds in large processes. What
// is trusted may be on another node if its own is full.
enum class Placing { looked_at, trusted };

// Mapped pages, bound to a node, and first touched by a thread on that node. They take less than
// 2 MiB more than the range: its last part is in ordinary pages if its huge page would take more.
class Pages {
public:
    // Throws std::bad_alloc if the address space or the memory of the process is exhausted,
    // NodeFull if pages that are looked at do not fit on the node.
    Pages(std::size_t bytes, const NumaNode& node, PageSize size,
          Placing placing = Placing::looked_at);
    ~Pages();
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    // The placement after the first touch; bound pages do not move.
    [[nodiscard]] const Placement& placement() const { return placement_; }

private:
    std::size_t bytes_;
    std::size_t mapped_bytes_;
    std::byte* mapping_ = nullptr;
    std::byte* data_ = nullptr;
    Placement placement_;
};

// The placement of the pages of any range: queries the kernel for a sample of them.
Placement placement_of(const std::byte* data, std::size_t bytes, int node);

}  // namespace waywiser::host
