#include "transfer/staged_list.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "transfer/direct_list.hpp"
#include "transfer/list_kernel.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kLeastSlot = std::size_t{256} << 10;
constexpr std::size_t kMostOfSlot = std::size_t{2} << 20;
constexpr std::size_t kFewestChunks = 16;
// Chunks are multiples of it, so that their borders cut few pieces.
constexpr std::size_t kChunkUnit = std::size_t{16} << 10;
constexpr std::size_t kTables = 2;  // for at most two GPUs
constexpr std::size_t kShortestRun = 16;

std::vector<std::size_t> starts_of(const std::vector<Piece>& pieces) {
    std::vector<std::size_t> starts;
    starts.reserve(pieces.size());
    std::size_t at = 0;
    for (const Piece& piece : pieces) {
        starts.push_back(at);
        at += piece.bytes;
    }
    return starts;
}

}  // namespace

std::size_t list_slot_bytes(std::size_t bytes) {
    return std::clamp(std::bit_ceil(bytes / kFewestChunks), kLeastSlot, kMostOfSlot);
}

StagedList::Cut StagedList::cut(const std::vector<Piece>& pieces, std::size_t slot_bytes) {
    Cut cut{.run = common_run(pieces), .chunk = slot_bytes};
    if (cut.run < kShortestRun) {
        cut.run = 0;
        return cut;
    }
    // The tables take their part of the slot.
    constexpr std::size_t kEntries = kTables * sizeof(std::size_t);
    const std::size_t tables = (slot_bytes * kEntries + cut.run - 1) / (cut.run + kEntries) + 1;
    cut.chunk = (slot_bytes - tables) / kChunkUnit * kChunkUnit;
    return cut;
}

StagedList::StagedList(Engine& engine, const End& to, const End& from,
                       const std::vector<Piece>& pieces, std::size_t slot_bytes)
    : StagedList(engine, to, from, pieces, slot_bytes, cut(pieces, slot_bytes)) {}

StagedList::StagedList(Engine& engine, const End& to, const End& from,
                       const std::vector<Piece>& pieces, std::size_t slot_bytes, const Cut& cut)
    : Job(bytes_of(pieces), cut.chunk, cut.chunk),
      to_gpu_(to.kind == End::Kind::device),
      from_gpu_(from.kind == End::Kind::device),
      pieces_(pieces),
      starts_(starts_of(pieces_)),
      cut_(cut) {
    most_threads_ = kListThreads;
    const int gpu = to_gpu_ ? to.gpu : from.gpu;
    const GpuPlace* place = gpu >= 0 ? engine.machine().gpu(gpu) : nullptr;
    if (place != nullptr) node_ = place->numa;
    Route route;
    if (to_gpu_ || from_gpu_) {
        route.slot_bytes = slot_bytes;
        route.device = from_gpu_ ? from.gpu : to.gpu;
        route.direction = from_gpu_ ? Direction::out : Direction::in;
    }
    if (to_gpu_ && from_gpu_) {
        route.second_device = to.gpu;
        route.second_direction = Direction::in;
    }
    routes_.push_back(route);
}

std::vector<Piece> StagedList::parts(const Chunk& chunk) const {
    std::vector<Piece> found;
    const std::size_t end = chunk.at + chunk.bytes;
    auto n =
        static_cast<std::size_t>(std::ranges::upper_bound(starts_, chunk.at) - starts_.begin()) - 1;
    for (std::size_t at = chunk.at; at < end; ++n) {
        const std::size_t skip = at - starts_[n];
        const std::size_t bytes = std::min(pieces_[n].bytes - skip, end - at);
        const bool begins = skip == 0 && pieces_[n].begins;
        found.push_back({pieces_[n].to + skip, pieces_[n].from + skip, bytes, begins});
        at += bytes;
    }
    return found;
}

bool StagedList::drains() const { return !to_gpu_; }

void StagedList::fill(Chunk& chunk) {
    if (from_gpu_) return;
    std::byte* into = chunk.slot.data();
    for (const Piece& part : parts(chunk)) {
        if (to_gpu_) {
            std::memcpy(into, part.from, part.bytes);
            into += part.bytes;
        } else {
            std::memcpy(part.to, part.from, part.bytes);
        }
    }
}

void StagedList::drain(Chunk& chunk) {
    if (to_gpu_ || !from_gpu_) return;
    const std::byte* from = chunk.slot.data();
    for (const Piece& part : parts(chunk)) {
        std::memcpy(part.to, from, part.bytes);
        from += part.bytes;
    }
}

void StagedList::submit(Chunk& chunk) {
    std::byte* const slot = chunk.slot.data();
    if (from_gpu_) {
        std::vector<Piece> moves = parts(chunk);
        std::byte* at = slot;
        for (Piece& move : moves) {
            move.to = at;
            at += move.bytes;
        }
        move_on_gpu(moves, ListSide::from, table_of(chunk, 0), *chunk.stream);
    }
    if (from_gpu_ && to_gpu_) {
        chunk.handover->record(*chunk.stream);
        gpu::wait(*chunk.second, *chunk.handover);
    }
    if (to_gpu_) {
        std::vector<Piece> moves = parts(chunk);
        const std::byte* at = slot;
        for (Piece& move : moves) {
            move.from = at;
            at += move.bytes;
        }
        move_on_gpu(moves, ListSide::to, table_of(chunk, 1),
                    chunk.second != nullptr ? *chunk.second : *chunk.stream);
    }
}

std::size_t* StagedList::table_of(const Chunk& chunk, std::size_t number) const {
    if (cut_.run == 0) return nullptr;
    return reinterpret_cast<std::size_t*>(chunk.slot.data() + cut_.chunk) +
           number * (cut_.chunk / cut_.run);
}

// `on_gpu`: the side on the GPU; the other one is a slot.
void StagedList::move_on_gpu(std::span<const Piece> moves, ListSide on_gpu, std::size_t* table,
                             const gpu::Stream& stream) const {
    const auto copy = [&](std::span<const Piece> some) {
        for (const Piece& piece : merged(some)) {
            gpu::copy_async(piece.to, piece.from, piece.bytes, stream);
        }
    };
    if (table == nullptr) return copy(moves);
    // The border of the chunk may cut the first and the last piece: the kernel moves the whole
    // ones.
    const auto is_cut = [&](const Piece& piece) { return piece.bytes % cut_.run != 0; };
    std::span<const Piece> whole = moves;
    if (is_cut(whole.front())) whole = whole.subspan(1);
    if (!whole.empty() && is_cut(whole.back())) whole = whole.first(whole.size() - 1);
    if (whole.empty()) return copy(moves);
    const ListTraits traits =
        traits_of(whole, on_gpu == ListSide::to ? ListPath::from_host : ListPath::to_host);
    std::byte* const base = lowest(whole, on_gpu);
    std::byte* const slot =
        on_gpu == ListSide::to ? const_cast<std::byte*>(whole.front().from) : whole.front().to;
    const ListChoice choice = choose_list_method(traits, {});
    if (choice.method != ListMethod::kernel || !has_same_address(slot, stream.device())) {
        return copy(moves);
    }
    const std::size_t count = traits.bytes / cut_.run;
    write_offsets(whole, cut_.run, on_gpu, base, table);
    const Runs listed = listed_runs(base, cut_.run, count, table, traits.access);
    const Runs together = Runs::together(slot, traits.bytes);
    if (on_gpu == ListSide::to) {
        launch_list(stream, choice.blocks, listed, together);
    } else {
        launch_list(stream, choice.blocks, together, listed);
    }
    if (whole.data() != moves.data()) copy(moves.first(1));
    if (whole.data() + whole.size() != moves.data() + moves.size()) copy(moves.last(1));
}

}  // namespace waywiser::transfer
