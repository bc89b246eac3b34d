#include "transfer/describe.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "host/pages.hpp"

namespace waywiser::transfer {
namespace {

// Pages of a pageable stretch that are queried one by one: the gaps between registered parts of an
// array may be small or large.
constexpr std::size_t kPagesLookedAt = 256;

std::byte* next_page(std::byte* at) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return at + (host::page_bytes() - address % host::page_bytes());
}

// The first address after `at`, up to `end`, at which the memory is not pageable any more.
std::byte* end_of_pageable(std::byte* at, std::byte* end) {
    std::size_t looked = 0;
    std::size_t step = host::page_bytes();
    std::byte* pageable = at;
    for (std::byte* page = next_page(at); page < end;) {
        const gpu::PointerInfo info = gpu::pointer_info(page);
        if (info.kind != gpu::PointerKind::pageable) {
            return std::max(info.start, pageable);
        }
        pageable = page;
        if (++looked > kPagesLookedAt) step *= 2;
        page = static_cast<std::size_t>(end - page) <= step ? end : page + step;
    }
    // The last byte: a registration that covers the end is never missed.
    const gpu::PointerInfo last = gpu::pointer_info(end - 1);
    if (last.kind != gpu::PointerKind::pageable && last.start > at) return last.start;
    return end;
}

}  // namespace

std::vector<Segment> segments(const void* data, std::size_t bytes) {
    std::vector<Segment> found;
    auto* at = static_cast<std::byte*>(const_cast<void*>(data));
    std::byte* const end = at + bytes;
    while (at < end) {
        const gpu::PointerInfo info = gpu::pointer_info(at);
        std::byte* stop = end;
        if (info.kind == gpu::PointerKind::pageable) {
            stop = end_of_pageable(at, end);
        } else if (info.start != nullptr && info.bytes > 0) {
            stop = std::min(end, info.start + info.bytes);
        }
        if (stop <= at) stop = end;  // inconsistent answer of the runtime: avoid an endless loop
        found.push_back({at, static_cast<std::size_t>(stop - at), info});
        at = stop;
    }
    return found;
}

Range range_of(const void* data, std::size_t bytes) {
    const gpu::PointerInfo first = gpu::pointer_info(data);
    Range range{.kind = first.kind, .device = first.device, .uniform = true, .first = first};
    if (bytes == 0) return range;
    const auto* begin = static_cast<const std::byte*>(data);
    if (first.kind != gpu::PointerKind::pageable && first.bytes > 0) {
        range.uniform = begin + bytes <= first.start + first.bytes;
        return range;
    }
    const gpu::PointerInfo last = gpu::pointer_info(begin + bytes - 1);
    range.uniform = last.kind == first.kind;
    return range;
}

int numa_of_page(const void* data) {
    void* page =
        reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data) & ~(host::page_bytes() - 1));
    int node = -1;
    if (syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &node, 0) != 0) return -1;
    return std::max(node, -1);
}

}  // namespace waywiser::transfer
