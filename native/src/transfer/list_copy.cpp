#include "transfer/list_copy.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace waywiser::transfer {
namespace {

void check_index(const Blocks& side, std::size_t block, const char* name) {
    if (block > side.stride && side.blocks > 1) {
        throw InvalidCopy(std::string("copy_blocks: a block of ") + std::to_string(block) +
                          " bytes is longer than the stride of the " + name + ", " +
                          std::to_string(side.stride) + " bytes");
    }
    if (side.blocks != 0 && side.stride > std::numeric_limits<std::size_t>::max() / side.blocks) {
        throw InvalidCopy(std::string("copy_blocks: the size of the ") + name +
                          " exceeds the address space");
    }
    for (const std::int64_t index : side.index) {
        if (index >= 0 && static_cast<std::uint64_t>(index) < side.blocks) continue;
        throw InvalidCopy(std::string("copy_blocks: index ") + std::to_string(index) + " of the " +
                          name + " is out of range: it has " + std::to_string(side.blocks) +
                          " blocks");
    }
}

using Bounds = std::pair<const std::byte*, const std::byte*>;

// Whether any source overlaps any destination.
bool overlaps(const std::vector<Piece>& pieces) {
    std::vector<Bounds> to;
    std::vector<Bounds> from;
    for (const Piece& piece : pieces) {
        to.emplace_back(piece.to, piece.to + piece.bytes);
        from.emplace_back(piece.from, piece.from + piece.bytes);
    }
    std::ranges::sort(to);
    std::ranges::sort(from);
    // Ends of intervals sorted by their start: the furthest so far is what counts.
    const auto reach = [](std::vector<Bounds>& side) {
        const std::byte* furthest = nullptr;
        for (auto& [begin, end] : side) {
            furthest = std::max(furthest, end);
            end = furthest;
        }
    };
    reach(to);
    for (const auto& [begin, end] : from) {
        const auto after = std::ranges::lower_bound(to, end, {}, &Bounds::first);
        if (after != to.begin() && std::prev(after)->second > begin) return true;
    }
    return false;
}

void check_overlap(const std::vector<Piece>& pieces) {
    const std::byte* low[2] = {pieces.front().to, pieces.front().from};
    const std::byte* high[2] = {low[0], low[1]};
    for (const Piece& piece : pieces) {
        low[0] = std::min<const std::byte*>(low[0], piece.to);
        high[0] = std::max<const std::byte*>(high[0], piece.to + piece.bytes);
        low[1] = std::min(low[1], piece.from);
        high[1] = std::max(high[1], piece.from + piece.bytes);
    }
    if (low[0] >= high[1] || low[1] >= high[0]) return;
    if (overlaps(pieces)) {
        throw InvalidCopy("a source overlaps a destination: copy through a third buffer");
    }
}

}  // namespace

std::vector<Piece> pieces_of(std::span<void* const> to, std::span<const void* const> from,
                             std::span<const std::size_t> sizes) {
    std::vector<Piece> pieces;
    pieces.reserve(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0) continue;
        if (to[i] == nullptr || from[i] == nullptr) {
            throw InvalidCopy("copy_batch: piece " + std::to_string(i) + " is a null pointer");
        }
        pieces.push_back(
            {static_cast<std::byte*>(to[i]), static_cast<const std::byte*>(from[i]), sizes[i]});
    }
    return pieces;
}

std::vector<Piece> pieces_of(const Blocks& to, const Blocks& from, std::size_t block) {
    check_index(to, block, "destination");
    check_index(from, block, "source");
    std::vector<Piece> pieces;
    if (block == 0) return pieces;
    pieces.reserve(to.index.size());
    for (std::size_t i = 0; i < to.index.size(); ++i) {
        pieces.push_back({to.data + static_cast<std::size_t>(to.index[i]) * to.stride,
                          from.data + static_cast<std::size_t>(from.index[i]) * from.stride,
                          block});
    }
    return pieces;
}

std::vector<Piece> merged(const std::vector<Piece>& pieces) {
    std::vector<Piece> joined;
    joined.reserve(pieces.size());
    for (const Piece& piece : pieces) {
        if (!joined.empty()) {
            Piece& last = joined.back();
            if (last.to + last.bytes == piece.to && last.from + last.bytes == piece.from) {
                last.bytes += piece.bytes;
                continue;
            }
        }
        joined.push_back(piece);
    }
    return joined;
}

void copy_list(Engine& engine, const std::vector<Piece>& pieces, const CallerStream& stream) {
    if (pieces.empty()) return;
    check_overlap(pieces);
    for (const Piece& piece : merged(pieces)) {
        copy(engine, piece.to, piece.from, piece.bytes, stream);
    }
}

Started copy_list_async(const std::shared_ptr<Engine>& engine, const std::vector<Piece>& pieces,
                        const CallerStream& stream) {
    engine->check_process();
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.bytes;
    if (pieces.empty()) return Started(0);
    if (!engine->machine().gpus.empty() && gpu::capturing(stream.handle)) {
        throw Refused("the stream is being captured: record the copies with copy_batch()");
    }
    copy_list(*engine, pieces, stream);
    const gpu::CallerState keep;
    const Piece& first = pieces.front();
    const int to = side_of(first.to, first.bytes).end.gpu;
    const int from = side_of(const_cast<std::byte*>(first.from), first.bytes).end.gpu;
    const int operand = to >= 0 ? to : from;
    if (operand < 0) return Started(bytes);  // host memory: the bytes are there
    CallerStream followed = stream;
    if (stream.is_default() && stream.gpu < 0 && !gpu::has_context()) followed.gpu = operand;
    auto marked = mark(*engine, followed, bytes);
    return marked ? std::move(*marked) : Started(bytes);
}

}  // namespace waywiser::transfer
