#include "transfer/chunked_copy.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "host/files.hpp"
#include "host/streaming.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMorePages = std::size_t{64}
                                   << 10;  // with fewer bytes the CPU creates the pages itself

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

bool is_resident(const std::byte* at) {
    const auto page = reinterpret_cast<std::uintptr_t>(at) / page_bytes() * page_bytes();
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(page), page_bytes(), &resident) != 0 ||
           (resident & 1) != 0;
}

}  // namespace

bool is_fresh(const std::byte* data, std::size_t bytes) {
    return bytes > 0 && !is_resident(data) && !is_resident(data + bytes / 2) &&
           !is_resident(data + bytes - 1);
}

void prefer_huge_pages(std::byte* data, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto begin = (address + kHugePage - 1) / kHugePage * kHugePage;
    const auto end = (address + bytes) / kHugePage * kHugePage;
    if (end <= begin || is_resident(reinterpret_cast<std::byte*>(begin))) return;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

void copy_to_fresh(std::byte* to, const std::byte* from, std::size_t bytes, bool streaming) {
    const std::size_t page = page_bytes();
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

namespace {

// The minimum chunk if no CPU takes part: a link is then busy from the start.
std::size_t least_chunk(const Endpoint& to, const Endpoint& from, const CopyShape& shape) {
    const auto reached = [](const Endpoint& end) {
        return end.kind == Endpoint::Kind::device ||
               (end.kind == Endpoint::Kind::host && end.pinned);
    };
    return reached(to) && reached(from) && to.kind != from.kind ? shape.chunk : shape.least;
}

// The base of chunk borders: blocks of a file, or huge pages that do not exist yet if chunks are
// multiples of them.
std::size_t first_byte(const Endpoint& to, const Endpoint& from, const CopyShape& shape) {
    if (from.kind == Endpoint::Kind::file) return from.offset;
    if (to.kind == Endpoint::Kind::file) return to.offset;
    const bool by_pages = to.kind == Endpoint::Kind::host && !to.pinned && shape.least >= kHugePage;
    return by_pages ? reinterpret_cast<std::uintptr_t>(to.data) : 0;
}

}  // namespace

// What has to reach the disk, now or by a later call, is written there at once.
Writing writing_of(const Endpoint& to, const CopyShape& shape) {
    const bool direct = shape.direct_io && (shape.sync || is_direct(to.file));
    return direct ? Writing::direct : Writing::cached;
}

ChunkedCopy::ChunkedCopy(Engine& engine, const Endpoint& to, const Endpoint& from,
                         std::size_t bytes, const CopyShape& shape)
    : Job(bytes, shape.chunk, least_chunk(to, from, shape), first_byte(to, from, shape)),
      to_(to),
      from_(from),
      streaming_(shape.streaming),
      stream_slots_(shape.stream_slots),
      direct_io_(shape.direct_io),
      sync_(shape.sync),
      truncate_(shape.truncate) {
    if (from.kind == Endpoint::Kind::file) source_file_.emplace(from.file);
    if (to.kind == Endpoint::Kind::file) {
        target_file_.emplace(to.file, writing_of(to, shape));
    }
    if (shape.threads != 0) most_threads_ = shape.threads;
    chunks_per_thread_ = std::max<std::size_t>(shape.slots, 1);
    fills_ = slotted() && from.kind != Endpoint::Kind::device && to.kind == Endpoint::Kind::device;
    for (const Endpoint* end : {&to, &from}) {
        const GpuPlace* gpu = end->gpu >= 0 ? engine.machine().gpu(end->gpu) : nullptr;
        if (gpu != nullptr) node_ = gpu->numa;
    }
    if (to.kind == Endpoint::Kind::host && !to.pinned) prefer_huge_pages(to.data, bytes);
    add_routes(engine, shape);
    two_links_ = to.kind == Endpoint::Kind::device && from.kind == Endpoint::Kind::device;
    method_ = counted_method();
    gathers_ = slotted() && !two_links_ && routes_.front().device >= 0 && gpu::has_batch();
}

waywiser_method ChunkedCopy::counted_method() const {
    if (to_.kind == Endpoint::Kind::file) return WAYWISER_METHOD_WRITE;
    if (from_.kind == Endpoint::Kind::file) return WAYWISER_METHOD_READ;
    const bool is_relayed =
        std::ranges::any_of(routes_, [](const Route& one) { return one.bounce_bytes > 0; });
    return is_relayed ? WAYWISER_METHOD_RELAYED : WAYWISER_METHOD_CHUNKED;
}

// Whether chunks pass through pinned staging.
bool ChunkedCopy::slotted() const {
    const bool to_gpu = to_.kind == Endpoint::Kind::device;
    const bool from_gpu = from_.kind == Endpoint::Kind::device;
    if (to_gpu && from_gpu) return true;
    if (to_gpu || from_gpu) return !(to_gpu ? from_ : to_).pinned;
    if (to_.kind != Endpoint::Kind::file) return false;
    if (from_.kind == Endpoint::Kind::file) return true;
    // Direct I/O takes memory only at the same offset within a block as in the file.
    const auto address = reinterpret_cast<std::uintptr_t>(from_.data);
    return target_file_->writes_directly() &&
           address % host::kDiskBlock != to_.offset % host::kDiskBlock;
}

void ChunkedCopy::add_routes(Engine& engine, const CopyShape& shape) {
    const bool to_gpu = to_.kind == Endpoint::Kind::device;
    const bool from_gpu = from_.kind == Endpoint::Kind::device;
    Route route{.slot_bytes = slotted() ? shape.chunk : 0};
    if (to_gpu && from_gpu) {
        route.device = from_.gpu;
        route.direction = Direction::out;
        route.second_device = to_.gpu;
        route.second_direction = Direction::in;
        routes_.push_back(route);
        return;
    }
    if (!to_gpu && !from_gpu) {
        routes_.push_back(route);
        return;
    }
    const int gpu = to_gpu ? to_.gpu : from_.gpu;
    route.device = gpu;
    route.direction = to_gpu ? Direction::in : Direction::out;
    // Without CPU work in between, a few chunks keep a link busy, and more only make others wait.
    if (!slotted()) route.most_chunks = chunks_per_thread_;
    if (shape.direct_route) routes_.push_back(route);
    for (const int relay : shape.relays) {
        if (relay == gpu || !engine.enable_peers(relay, gpu)) continue;
        // The relay's own link and its link to the GPU work concurrently, on two streams.
        route.device = relay;
        route.direction = to_gpu ? Direction::in : Direction::peer;
        route.second_device = relay;
        route.second_direction = to_gpu ? Direction::peer : Direction::out;
        route.bounce_bytes = shape.chunk;
        routes_.push_back(route);
    }
    if (routes_.empty()) {  // no relay can be used
        route = Route{.device = gpu,
                      .direction = to_gpu ? Direction::in : Direction::out,
                      .slot_bytes = route.slot_bytes,
                      .most_chunks = route.most_chunks};
        routes_.push_back(route);
    }
}

bool ChunkedCopy::drains() const {
    return to_.kind == Endpoint::Kind::file || (to_.kind == Endpoint::Kind::host && !to_.pinned);
}

void ChunkedCopy::fill(Chunk& chunk) {
    if (to_.kind == Endpoint::Kind::file && chunk.slot) {
        chunk.skew = (to_.offset + chunk.at) % host::kDiskBlock;
    }
    if (from_.kind == Endpoint::Kind::device) return;
    const bool through_gpu = to_.kind == Endpoint::Kind::device;
    std::byte* into = chunk.slot.data();
    if (from_.kind == Endpoint::Kind::host) {
        const std::byte* const source = from_.data + chunk.at;
        if (through_gpu) {
            if (into != nullptr && stream_slots_) {
                host::copy_streaming(into, source, chunk.bytes);
            } else if (into != nullptr) {
                std::memcpy(into, source, chunk.bytes);
            }
        } else if (to_.kind == Endpoint::Kind::host) {
            copy_to_fresh(to_.data + chunk.at, source, chunk.bytes, streaming_);
        } else if (into == nullptr) {
            target_file_->write(source, chunk.bytes, to_.offset + chunk.at);
        } else {
            std::memcpy(into + chunk.skew, source, chunk.bytes);
            target_file_->write(into + chunk.skew, chunk.bytes, to_.offset + chunk.at);
        }
        return;
    }
    const std::uint64_t at = from_.offset + chunk.at;
    if (into != nullptr) {
        chunk.skew = at % host::kDiskBlock;
        into += chunk.skew;
    } else {
        into = to_.data + chunk.at;
    }
    // A slot is a multiple of blocks, and so are the bytes around its chunk.
    const bool whole_blocks = at % host::kDiskBlock == 0 && chunk.bytes % host::kDiskBlock == 0;
    const bool padded = direct_io_ && (chunk.slot || whole_blocks);
    const std::size_t got = source_file_->read(into, chunk.bytes, at, padded);
    if (got < chunk.bytes) {
        ends_at(chunk.at + got);
        chunk.bytes = got;
    }
    if (to_.kind == Endpoint::Kind::file && got > 0) {
        target_file_->write(into, got, to_.offset + chunk.at);
    }
}

void ChunkedCopy::submit(Chunk& chunk) {
    const Route& route = routes_[chunk.route];
    std::byte* const slot = chunk.slot ? chunk.slot.data() + chunk.skew : nullptr;
    std::byte* const bounce = chunk.bounce.data();
    const std::size_t bytes = chunk.bytes;
    const bool to_gpu = to_.kind == Endpoint::Kind::device;
    const bool from_gpu = from_.kind == Endpoint::Kind::device;
    std::byte* const to = to_gpu || slot == nullptr ? to_.data + chunk.at : slot;
    const std::byte* const from = from_gpu || slot == nullptr ? from_.data + chunk.at : slot;
    const auto hand_over = [&] {
        chunk.handover->record(*chunk.stream);
        gpu::wait(*chunk.second, *chunk.handover);
    };
    if (to_gpu && from_gpu) {
        gpu::copy_async(slot, from, bytes, *chunk.stream);
        hand_over();
        gpu::copy_async(to, slot, bytes, *chunk.second);
    } else if (bounce == nullptr) {
        gpu::copy_async(to, from, bytes, *chunk.stream);
    } else if (to_gpu) {
        gpu::copy_async(bounce, from, bytes, *chunk.stream);
        hand_over();
        gpu::copy_peer_async(to, to_.gpu, bounce, route.device, bytes, *chunk.second);
    } else {
        gpu::copy_peer_async(bounce, route.device, from, from_.gpu, bytes, *chunk.stream);
        hand_over();
        gpu::copy_async(to, bounce, bytes, *chunk.second);
    }
}

// Between a host and GPUs. The engine pauses less between copies of one call: chunks of 2 MiB move
// at 54.2 GB/s instead of 51.3 (measured on H200).
void ChunkedCopy::submit_together(std::span<Chunk* const> chunks) {
    if (chunks.size() == 1) return submit(*chunks.front());
    const Chunk& first = *chunks.front();
    const int relay = routes_[first.route].device;
    const bool to_gpu = to_.kind == Endpoint::Kind::device;
    const bool relayed = first.second != nullptr;
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> bytes;
    for (const Chunk* chunk : chunks) {
        std::byte* const slot = chunk->slot.data() + chunk->skew;
        std::byte* const memory = (to_gpu ? to_ : from_).data + chunk->at;
        std::byte* const gpu = relayed ? chunk->bounce.data() : memory;
        to.push_back(to_gpu ? gpu : slot);
        from.push_back(to_gpu ? slot : gpu);
        bytes.push_back(chunk->bytes);
        if (relayed && !to_gpu) {
            gpu::copy_peer_async(gpu, relay, memory, from_.gpu, chunk->bytes, *first.stream);
        }
    }
    const auto hand_over = [&] {
        first.handover->record(*first.stream);
        gpu::wait(*first.second, *first.handover);
    };
    if (relayed && !to_gpu) hand_over();
    gpu::copy_batch_async(to, from, bytes, true,
                          relayed && !to_gpu ? *first.second : *first.stream);
    if (!relayed || !to_gpu) return;
    hand_over();
    for (const Chunk* chunk : chunks) {
        gpu::copy_peer_async(to_.data + chunk->at, to_.gpu, chunk->bounce.data(), relay,
                             chunk->bytes, *first.second);
    }
}

void ChunkedCopy::drain(Chunk& chunk) {
    if (from_.kind != Endpoint::Kind::device || !chunk.slot) return;
    const std::byte* const from = chunk.slot.data() + chunk.skew;
    if (to_.kind == Endpoint::Kind::file) {
        target_file_->write(from, chunk.bytes, to_.offset + chunk.at);
    } else if (to_.kind == Endpoint::Kind::host) {
        copy_to_fresh(to_.data + chunk.at, from, chunk.bytes, streaming_);
    }
}

void ChunkedCopy::finish() {
    if (target_file_) target_file_->finish(to_.offset + bytes(), truncate_, sync_);
}

}  // namespace waywiser::transfer
