// The pages of a range to touch: all of them, or a chunk of pages at every stride. Pages are
// numbered from the one that contains the first byte of the range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace waywiser {

// Pages are numbered from the one that holds the first byte of the range.
struct TouchedPages {
    std::size_t page;    // bytes
    std::size_t before;  // bytes of the first page before the range
    std::size_t pages;   // number of pages that the range touches
    std::size_t chunk;   // pages per chunk
    std::size_t stride;  // pages from one chunk start to the next

    static TouchedPages of(const std::byte* data, std::size_t bytes, std::size_t page,
                           std::size_t chunk_bytes, std::size_t stride_bytes) {
        const auto whole = [page](std::size_t some) { return (some + page - 1) / page; };
        const std::size_t before = reinterpret_cast<std::uintptr_t>(data) % page;
        const std::size_t chunk = std::max<std::size_t>(whole(chunk_bytes), 1);
        return {.page = page,
                .before = before,
                .pages = bytes == 0 ? 0 : whole(before + bytes),
                .chunk = chunk,
                .stride = std::max(whole(stride_bytes), chunk)};
    }
    [[nodiscard]] constexpr std::size_t chunks() const { return (pages + stride - 1) / stride; }
    [[nodiscard]] constexpr std::size_t first_page(std::size_t n) const { return n * stride; }
    // One past the last page of the n-th chunk.
    [[nodiscard]] constexpr std::size_t last_page(std::size_t n) const {
        const std::size_t behind = n * stride + chunk;
        return behind < pages ? behind : pages;
    }
    // The offset in the range of the byte that is touched in a page: the page's first in the range.
    [[nodiscard]] constexpr std::size_t offset(std::size_t number) const {
        return number == 0 ? 0 : number * page - before;
    }
};

}  // namespace waywiser
