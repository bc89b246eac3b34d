#include "transfer/chunked_copy.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "host/files.hpp"
#include "host/pages.hpp"
#include "host/streaming.hpp"
#include "waywiser/huge_page.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kMorePages = std::size_t{64}
                                   << 10;  // with fewer bytes the CPU creates the pages itself
// Of each thread if no GPU takes part: a slow thread holds up the others after so many pieces.
constexpr std::size_t kSlotsOfCpus = 8;

bool is_resident(const std::byte* at) {
    const auto page =
        reinterpret_cast<std::uintptr_t>(at) / host::page_bytes() * host::page_bytes();
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(page), host::page_bytes(), &resident) != 0 ||
           (resident & 1) != 0;
}

}  // namespace

bool is_fresh(const std::byte* data, std::size_t bytes) {
    return bytes > 0 && !is_resident(data) && !is_resident(data + bytes / 2) &&
           !is_resident(data + bytes - 1);
}

void prefer_huge_pages(std::byte* data, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::size_t huge_page = huge_page_bytes();
    const auto begin = (address + huge_page - 1) / huge_page * huge_page;
    const auto end = (address + bytes) / huge_page * huge_page;
    if (end <= begin || is_resident(reinterpret_cast<std::byte*>(begin))) return;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

void copy_to_fresh(std::byte* to, const std::byte* from, std::size_t bytes, bool streaming) {
    const std::size_t page = host::page_bytes();
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    const std::size_t head = (page - address % page) % page;
    if (bytes >= kMorePages + head) {
        std::byte* const first = to + head;
        const std::size_t whole = (bytes - head) / page * page;
#if defined(MADV_POPULATE_WRITE)
        if (!is_resident(first)) madvise(first, whole, MADV_POPULATE_WRITE);
#endif
    }
    if (streaming) {
        host::copy_streaming(to, from, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

Endpoint Endpoint::host(void* data, bool pinned) {
    return {.kind = Kind::host, .data = static_cast<std::byte*>(data), .pinned = pinned};
}
Endpoint Endpoint::device(void* data, int gpu) {
    return {.kind = Kind::device, .data = static_cast<std::byte*>(data), .gpu = gpu};
}
Endpoint Endpoint::of_file(int file, std::uint64_t offset) {
    return {.kind = Kind::file, .file = file, .offset = offset};
}

// What has to reach the disk, now or by a later call, is written there at once.
Writing writing_of(const Endpoint& to, const CopyShape& shape) {
    const bool direct = shape.direct_io && (shape.sync || is_direct(to.file));
    return direct ? Writing::direct : Writing::cached;
}

namespace {

bool is_on_gpu(const Endpoint& end) { return end.kind == Endpoint::Kind::device; }
bool is_in_file(const Endpoint& end) { return end.kind == Endpoint::Kind::file; }

CpuWork work_of(const Endpoint& to, const Endpoint& from) {
    if (is_on_gpu(to) && is_on_gpu(from)) return CpuWork::none;
    if (!is_on_gpu(to) && !is_on_gpu(from)) return CpuWork::all;
    const Endpoint& host = is_on_gpu(to) ? from : to;
    if (host.kind == Endpoint::Kind::host && host.pinned) return CpuWork::none;
    return is_on_gpu(to) ? CpuWork::fills : CpuWork::drains;
}

// Whether bytes pass through slots in host memory.
bool is_slotted(const Endpoint& to, const Endpoint& from, const CopyShape& shape) {
    switch (work_of(to, from)) {
        case CpuWork::none: return is_on_gpu(to) && is_on_gpu(from);
        case CpuWork::all: break;
        default: return true;
    }
    if (!is_in_file(to)) return false;
    if (is_in_file(from)) return true;
    // Direct I/O takes memory only at the same offset within a block as in the file.
    const auto address = reinterpret_cast<std::uintptr_t>(from.data);
    return writing_of(to, shape) == Writing::direct &&
           address % host::kDiskBlock != to.offset % host::kDiskBlock;
}

// The base of borders: blocks of a file, or huge pages that do not exist yet if pieces are
// multiples of them.
std::size_t first_byte(const Endpoint& to, const Endpoint& from, const CopyShape& shape) {
    if (is_in_file(from)) return from.offset;
    if (is_in_file(to)) return to.offset;
    const bool by_pages =
        to.kind == Endpoint::Kind::host && !to.pinned && shape.least >= huge_page_bytes();
    return by_pages ? reinterpret_cast<std::uintptr_t>(to.data) : 0;
}

// Without a GPU a slot is a piece, and each thread has several of them.
Division division_of(const Endpoint& to, const Endpoint& from, const CopyShape& shape,
                     std::size_t threads) {
    const CpuWork work = work_of(to, from);
    Division cut{.slot = shape.chunk, .piece = shape.chunk};
    // A slot that another CPU has filled before is not in this one's cache.
    const bool own = work == CpuWork::fills && shape.own_slots && threads > 1;
    // Threads share a slot. A file is read and written a slot at once.
    const bool is_shared = (work == CpuWork::fills || work == CpuWork::drains) && !own &&
                           !is_in_file(to) && !is_in_file(from);
    if (is_shared && shape.chunk % shape.least == 0) cut.piece = shape.least;
    if (own) cut.rings = std::max<std::size_t>(threads / (1 + shape.relays.size()), 1);
    cut.first = first_byte(to, from, shape) % cut.piece;
    const bool for_each = work != CpuWork::none && !own;
    cut.slots = std::max<std::size_t>(shape.slots, 1) * (for_each ? threads : 1);
    if (work == CpuWork::all) cut.slots = std::max(cut.slots, kSlotsOfCpus * threads);
    cut.joins = work == CpuWork::fills && shape.relays.empty();
    return cut;
}

std::size_t threads_of(const Engine& engine, const CopyShape& shape) {
    return shape.threads != 0 ? shape.threads : engine.options().threads;
}

waywiser_method method_of(const Engine& engine, const Endpoint& to, const Endpoint& from) {
    if (is_in_file(to)) return WAYWISER_METHOD_WRITE;
    if (is_in_file(from)) return WAYWISER_METHOD_READ;
    const CpuWork work = work_of(to, from);
    const bool is_awake =
        engine.options().spin_seconds > 0 && (work == CpuWork::fills || work == CpuWork::drains);
    return is_awake ? WAYWISER_METHOD_RING : WAYWISER_METHOD_CHUNKED;
}

}  // namespace

ChunkedCopy::ChunkedCopy(Engine& engine, const Endpoint& to, const Endpoint& from,
                         std::size_t bytes, const CopyShape& shape)
    : Job(bytes, division_of(to, from, shape, threads_of(engine, shape)), work_of(to, from)),
      to_(to),
      from_(from),
      streaming_(shape.streaming),
      stream_slots_(shape.stream_slots),
      direct_io_(shape.direct_io),
      sync_(shape.sync),
      truncate_(shape.truncate),
      submits_together_(gpu::has_batch() && division().rings > 1) {
    if (is_in_file(from)) source_file_.emplace(from.file);
    if (is_in_file(to)) target_file_.emplace(to.file, writing_of(to, shape));
    most_threads_ = threads_of(engine, shape);
    for (const Endpoint* end : {&to, &from}) {
        const GpuPlace* gpu = end->gpu >= 0 ? engine.machine().gpu(end->gpu) : nullptr;
        if (gpu != nullptr) node_ = gpu->numa;
    }
    const std::size_t huge_page = huge_page_bytes();
    if (to.kind == Endpoint::Kind::host && !to.pinned &&
        (huge_page <= kSmallHugePage || shape.least % huge_page == 0)) {
        prefer_huge_pages(to.data, bytes);
    }
    method_ = method_of(engine, to, from);
    add_routes(engine, shape, is_slotted(to, from, shape));
}

void ChunkedCopy::add_routes(Engine& engine, const CopyShape& shape, bool through_host) {
    const bool to_gpu = is_on_gpu(to_);
    const bool from_gpu = is_on_gpu(from_);
    Route route{.through_host = through_host};
    if (to_gpu || from_gpu) {
        route.device = from_gpu ? from_.gpu : to_.gpu;
        route.direction = from_gpu ? Direction::out : Direction::in;
    }
    if (to_gpu && from_gpu) {
        route.second_device = to_.gpu;
        route.second_direction = Direction::in;
    }
    if (shape.direct_route || shape.relays.empty()) routes_.push_back(route);
    for (const int relay : shape.relays) {
        if (relay == route.device || !engine.enable_peers(relay, route.device)) continue;
        // The relay's own link and its link to the GPU work concurrently, on two streams.
        routes_.push_back({.device = relay,
                           .direction = to_gpu ? Direction::in : Direction::peer,
                           .second_device = relay,
                           .second_direction = to_gpu ? Direction::peer : Direction::out,
                           .through_host = through_host,
                           .through_gpu = true});
        method_ = WAYWISER_METHOD_RELAYED;
    }
    if (routes_.empty()) routes_.push_back(route);  // no relay can be used
}

void ChunkedCopy::fill(const Part& part, std::byte* slot) {
    if (source_file_) {
        if (part.at >= moved_or_expected()) return;  // after the end of the file
        // A slot is a multiple of blocks, and so are the bytes around its pieces.
        const std::uint64_t at = from_.offset + part.at;
        const bool whole = at % host::kDiskBlock == 0 && part.bytes % host::kDiskBlock == 0;
        return read(part, slot != nullptr ? slot : to_.data + part.at,
                    direct_io_ && (slot != nullptr || whole));
    }
    const std::byte* const source = from_.data + part.at;
    if (is_on_gpu(to_)) {
        if (stream_slots_) {
            host::copy_streaming(slot, source, part.bytes);
        } else {
            std::memcpy(slot, source, part.bytes);
        }
    } else if (!target_file_) {
        copy_to_fresh(to_.data + part.at, source, part.bytes, streaming_);
    } else if (slot == nullptr) {
        target_file_->write(source, part.bytes, to_.offset + part.at);
    } else {
        std::memcpy(slot, source, part.bytes);
        target_file_->write(slot, part.bytes, to_.offset + part.at);
    }
}

void ChunkedCopy::read(const Part& part, std::byte* into, bool padded) {
    const std::size_t got = source_file_->read(into, part.bytes, from_.offset + part.at, padded);
    if (got < part.bytes) ends_at(part.at + got);
    if (target_file_ && got > 0) target_file_->write(into, got, to_.offset + part.at);
}

// Several are between a host and a GPU. A copy engine pauses less between the copies of one call.
void ChunkedCopy::submit(std::span<const Submission> made) {
    if (made.size() == 1 || !submits_together_) {
        for (const Submission& one : made) submit_one(one);
        return;
    }
    const bool to_gpu = is_on_gpu(to_);
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> bytes;
    for (const Submission& one : made) {
        std::byte* const memory = (to_gpu ? to_ : from_).data + one.part.at;
        to.push_back(to_gpu ? memory : one.slot);
        from.push_back(to_gpu ? one.slot : memory);
        bytes.push_back(one.part.bytes);
    }
    gpu::copy_batch_async(to, from, bytes, true, *made.front().stream);
}

void ChunkedCopy::submit_one(const Submission& made) {
    const bool to_gpu = is_on_gpu(to_);
    std::byte* const memory = (to_gpu ? to_ : from_).data + made.part.at;
    const std::size_t bytes = made.part.bytes;
    std::byte* host = made.slot;
    if (host == nullptr) host = (to_gpu ? from_ : to_).data + made.part.at;  // pinned
    const auto hand_over = [&] {
        made.handover->record(*made.stream);
        gpu::wait(*made.second, *made.handover);
    };
    if (to_gpu && is_on_gpu(from_)) {
        gpu::copy_async(host, from_.data + made.part.at, bytes, *made.stream);
        hand_over();
        gpu::copy_async(memory, host, bytes, *made.second);
        return;
    }
    const int relay = made.route->device;
    if (made.bounce == nullptr) {
        gpu::copy_async(to_gpu ? memory : host, to_gpu ? host : memory, bytes, *made.stream);
    } else if (to_gpu) {
        gpu::copy_async(made.bounce, host, bytes, *made.stream);
        hand_over();
        gpu::copy_peer_async(memory, to_.gpu, made.bounce, relay, bytes, *made.second);
    } else {
        gpu::copy_peer_async(made.bounce, relay, memory, from_.gpu, bytes, *made.stream);
        hand_over();
        gpu::copy_async(host, made.bounce, bytes, *made.second);
    }
}

void ChunkedCopy::drain(const Part& part, const std::byte* slot) {
    if (target_file_) {
        target_file_->write(slot, part.bytes, to_.offset + part.at);
    } else {
        copy_to_fresh(to_.data + part.at, slot, part.bytes, streaming_);
    }
}

void ChunkedCopy::finish() {
    if (target_file_) target_file_->finish(to_.offset + bytes(), truncate_, sync_);
}

}  // namespace waywiser::transfer
