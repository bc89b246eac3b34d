// The size of a huge page, for all that align memory to one.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace waywiser {

// A larger huge page is used only where one thread is the first to write all of it: a range that
// fills less would take all its memory, and of several threads each would clear a page of its own.
inline constexpr std::size_t kSmallHugePage = std::size_t{2} << 20;

// Bytes of a huge page that the kernel uses on request: 2 MiB with base pages of 4 KiB, 32 MiB with
// 16 KiB, 512 MiB with 64 KiB.
inline std::size_t huge_page_bytes() {
    static const std::size_t bytes = [] {
        std::ifstream file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        std::size_t stated = 0;
        if (file >> stated && stated > 0) return stated;
        // What one table of pages covers, each entry of which has 8 bytes.
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        return page / 8 * page;
    }();
    return bytes;
}

}  // namespace waywiser
