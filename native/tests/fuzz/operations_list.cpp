// Lists, arrays of blocks, snapshots.
#include <numeric>

#include "fuzz/operations.hpp"
#include "waywiser/transfer.h"

namespace waywiser::fuzz {
namespace {

constexpr std::size_t kMostPieces = 3000;
// The queue of a stream that is busy holds about a thousand calls of the runtime.
constexpr std::size_t kMostHeldPieces = 200;

struct Pieces {
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> sizes;
};

Pieces pieces_of(Player& player, const std::vector<Move>& moves) {
    Pieces pieces;
    for (const Move& move : moves) {
        pieces.to.push_back(player.memory().data(move.to));
        pieces.from.push_back(player.memory().data(move.from));
        pieces.sizes.push_back(move.to.bytes);
    }
    return pieces;
}

// The starts of pieces one after the other, with gaps or without; fewer if there is no more room.
std::vector<std::size_t> draw_starts(Draw& draw, const Span& within,
                                     const std::vector<std::size_t>& sizes) {
    const std::size_t gap = draw.one_in(2) ? 0 : draw.between(1, 300);
    std::vector<std::size_t> starts;
    std::size_t at = within.offset;
    for (const std::size_t bytes : sizes) {
        if (at + bytes > within.end()) break;
        starts.push_back(at);
        at += bytes + (gap == 0 ? 0 : draw.below(gap));
    }
    return starts;
}

// The pieces of one pair of ranges.
std::vector<Move> draw_pieces(Draw& draw, const Move& whole, std::size_t count) {
    const std::size_t largest = draw.of(std::array<std::size_t, 4>{64, 3000, 40000, 600000});
    std::vector<std::size_t> sizes(count);
    const bool equal = draw.one_in(2);
    for (auto& bytes : sizes) bytes = equal ? largest : draw.below(largest + 1);
    const auto to = draw_starts(draw, whole.to, sizes);
    auto from = draw_starts(draw, whole.from, sizes);
    const std::size_t fit = std::min(to.size(), from.size());
    from.resize(fit);
    if (equal && draw.one_in(2)) draw.shuffle(from);
    std::vector<Move> moves;
    for (std::size_t i = 0; i < fit; ++i) {
        moves.push_back(
            {{whole.to.region, to[i], sizes[i]}, {whole.from.region, from[i], sizes[i]}});
    }
    if (draw.one_in(2)) draw.shuffle(moves);
    return moves;
}

bool overlap(const Move& one, const Move& other) {
    return one.to.overlaps(other.to) || one.to.overlaps(other.from) || one.from.overlaps(other.to);
}

// Pieces of one pair of ranges, or of several.
std::vector<Move> draw_list(Player& player, Draw& draw) {
    const std::size_t pairs = draw.one_in(3) ? draw.between(2, 3) : 1;
    std::vector<Move> wholes, moves;
    for (std::size_t i = 0; i < pairs; ++i) {
        const Move whole = draw_move(player, draw);
        const bool apart =
            std::ranges::none_of(wholes, [&](const Move& other) { return overlap(whole, other); });
        const std::size_t most = draw.of(std::array<std::size_t, 4>{4, 40, 400, kMostPieces});
        const auto pieces = draw_pieces(draw, whole, draw.below(most + 1));
        if (!apart) continue;
        wholes.push_back(whole);
        moves.insert(moves.end(), pieces.begin(), pieces.end());
    }
    return moves;
}

std::string list_text(Player& player, const std::vector<Move>& moves) {
    std::string text = std::to_string(moves.size()) + " pieces";
    if (moves.empty()) return text;
    return text + ", first " + player.memory().text(moves.front().to) + " <- " +
           player.memory().text(moves.front().from);
}

void list(Player& player, Draw& draw, Form form) {
    Call call;
    call.form = form;
    call.limit = form == Form::wait ? draw_limit(draw) : -1;
    call.moves = draw_list(player, draw);
    call.text = "copy_batch" + form_text(form, call.limit) + " " + list_text(player, call.moves);
    call.stream = player.draw_stream(draw, call.moves);
    call.held = draw_held(player, draw, call) && call.moves.size() <= kMostHeldPieces;
    call.make = [pieces = pieces_of(player, call.moves), form](const Arguments& a) {
        const std::size_t count = pieces.sizes.size();
        if (form == Form::wait) {
            return waywiser_copy_batch_and_wait(a.context, pieces.to.data(), pieces.from.data(),
                                                pieces.sizes.data(), count, a.stream, a.limit,
                                                a.ended, a.transfer);
        }
        return waywiser_copy_batch(a.context, pieces.to.data(), pieces.from.data(),
                                   pieces.sizes.data(), count, a.stream, a.transfer);
    };
    player.perform(call, draw);
}

// The same ranges as operations of one transfer, or of a plan that is used once.
void submit(Player& player, Draw& draw, Form form) {
    const bool planned = draw.one_in(3);
    Call call;
    call.form = form;
    call.limit = form == Form::wait ? draw_limit(draw) : -1;
    call.moves = draw_list(player, draw);
    call.text = (planned ? "plan_submit" : "submit") + form_text(form, call.limit) + " " +
                list_text(player, call.moves);
    call.stream = player.draw_stream(draw, call.moves);
    call.held = draw_held(player, draw, call) && call.moves.size() <= kMostHeldPieces;
    call.make = [pieces = pieces_of(player, call.moves), form, planned](const Arguments& a) {
        std::vector<waywiser_operation> all(pieces.sizes.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].size = sizeof all[i];
            all[i].kind = WAYWISER_COPY;
            all[i].to = pieces.to[i];
            all[i].from = pieces.from[i];
            all[i].bytes = pieces.sizes[i];
        }
        const std::uint32_t flags = form == Form::stream ? WAYWISER_IN_STREAM : 0;
        if (!planned) {
            return form == Form::wait
                       ? waywiser_submit_and_wait(a.context, all.data(), all.size(), a.stream,
                                                  a.limit, a.ended, nullptr, a.transfer)
                       : waywiser_submit(a.context, all.data(), all.size(), a.stream, flags,
                                         a.transfer);
        }
        waywiser_plan* plan = nullptr;
        waywiser_status status = waywiser_plan_create(a.context, all.data(), all.size(), &plan);
        if (status != WAYWISER_OK) return status;
        all.assign(all.size(), waywiser_operation{});
        status = form == Form::wait ? waywiser_plan_submit_and_wait(plan, a.stream, a.limit,
                                                                    a.ended, nullptr, a.transfer)
                                    : waywiser_plan_submit(plan, a.stream, flags, a.transfer);
        waywiser_plan_release(plan);
        return status;
    };
    player.perform(call, draw);
}

// A list in which one destination is twice.
void list_with_overlap(Player& player, Draw& draw) {
    Call call;
    call.moves = draw_list(player, draw);
    std::erase_if(call.moves, [](const Move& move) { return move.to.bytes == 0; });
    if (call.moves.empty()) return;
    call.moves.push_back(draw.of(call.moves));
    draw.shuffle(call.moves);
    call.form = draw.one_in(2) ? Form::stream : Form::handle;
    call.text = "copy_batch (a destination twice) " + list_text(player, call.moves);
    call.stream = player.draw_stream(draw, call.moves);
    call.invalid = true;
    call.make = [pieces = pieces_of(player, call.moves)](const Arguments& a) {
        return waywiser_copy_batch(a.context, pieces.to.data(), pieces.from.data(),
                                   pieces.sizes.data(), pieces.sizes.size(), a.stream, a.transfer);
    };
    player.perform(call, draw);
}

struct BlockSide {
    Span array;
    std::size_t stride = 0, count = 0;
    std::vector<std::int64_t> index;

    [[nodiscard]] Span block(std::size_t number, std::size_t bytes) const {
        return {array.region, array.offset + static_cast<std::size_t>(index[number]) * stride,
                bytes};
    }
};

BlockSide draw_side(Draw& draw, const Span& array, std::size_t block, std::size_t count,
                    bool repeats) {
    BlockSide side{.array = array, .stride = block, .count = 0, .index = {}};
    if (draw.one_in(2)) side.stride += draw.below(block + 1);
    if (draw.one_in(4)) side.stride = (side.stride + 511) / 512 * 512;
    side.count = array.bytes < block ? 0 : (array.bytes - block) / side.stride + 1;
    side.index.resize(side.count);
    std::iota(side.index.begin(), side.index.end(), 0);
    if (draw.one_in(2)) draw.shuffle(side.index);
    if (repeats && draw.one_in(4)) {
        for (auto& index : side.index) index = draw.of(side.index);
    }
    if (side.index.size() > count) side.index.resize(count);
    return side;
}

Call blocks_call(Player& player, Draw& draw, Form form) {
    const Move whole = draw_move(player, draw);
    const std::size_t block =
        draw.one_in(3) ? 1 + draw.below(20000) : std::size_t{16} << draw.below(14);
    const std::size_t most = draw.of(std::array<std::size_t, 4>{4, 60, 600, kMostPieces});
    auto to = std::make_shared<BlockSide>(draw_side(draw, whole.to, block, most, false));
    auto from = std::make_shared<BlockSide>(draw_side(draw, whole.from, block, most, true));
    const std::size_t count = std::min(to->index.size(), from->index.size());
    Call call;
    call.form = form;
    call.limit = form == Form::wait ? draw_limit(draw) : -1;
    for (std::size_t i = 0; i < count; ++i) {
        call.moves.push_back({to->block(i, block), from->block(i, block)});
    }
    call.text = "copy_blocks" + form_text(form, call.limit) + " of " + std::to_string(block) +
                " bytes, strides " + std::to_string(to->stride) + " <- " +
                std::to_string(from->stride) + ", " + list_text(player, call.moves);
    call.stream = player.draw_stream(draw, call.moves);
    call.held = draw_held(player, draw, call) && count <= kMostHeldPieces;
    std::byte* const to_data = player.memory().data(whole.to);
    const std::byte* const from_data = player.memory().data(whole.from);
    call.make = [=](const Arguments& a) {
        if (form == Form::wait) {
            return waywiser_copy_blocks_and_wait(a.context, to_data, to->stride, to->count,
                                                 from_data, from->stride, from->count, block,
                                                 to->index.data(), from->index.data(), count,
                                                 a.stream, a.limit, a.ended, a.transfer);
        }
        return waywiser_copy_blocks(a.context, to_data, to->stride, to->count, from_data,
                                    from->stride, from->count, block, to->index.data(),
                                    from->index.data(), count, a.stream, a.transfer);
    };
    // For those that spoil an index.
    if (count >= 2 && draw.one_in(12)) {
        to->index[draw.below(count - 1)] =
            draw.one_in(2) ? to->index[count - 1] : static_cast<std::int64_t>(to->count);
        call.invalid = true;
        call.held = false;
        call.text += " (an index twice or out of range)";
    }
    return call;
}

void blocks(Player& player, Draw& draw, Form form) {
    player.perform(blocks_call(player, draw, form), draw);
}

void snapshot(Player& player, Draw& draw) {
    Memory& memory = player.memory();
    const std::size_t from = draw.of(memory.regions_of({RegionKind::device}));
    const std::size_t to =
        draw.of(memory.regions_of({RegionKind::pageable, RegionKind::pinned, RegionKind::mixed}));
    const std::size_t bytes = draw.bytes(std::min(memory.bytes(to), memory.bytes(from)));
    const Move whole{draw_span(draw, to, memory.bytes(to), bytes),
                     draw_span(draw, from, memory.bytes(from), bytes)};
    Call call;
    call.form = Form::handle;
    call.moves = draw.one_in(2) ? std::vector{whole}
                                : draw_pieces(draw, whole, draw.below(draw.one_in(3) ? 2000 : 40));
    call.text = "snapshot of " + list_text(player, call.moves);
    call.stream = player.draw_stream(draw, call.moves);
    call.held = draw_held(player, draw, call) && call.moves.size() <= kMostHeldPieces;
    call.make = [pieces = pieces_of(player, call.moves)](const Arguments& a) {
        return waywiser_snapshot(a.context, pieces.to.data(), pieces.from.data(),
                                 pieces.sizes.data(), pieces.sizes.size(), a.stream, a.transfer);
    };
    player.perform(call, draw);
}

}  // namespace

std::vector<OperationKind> list_operations() {
    return {
        {"list", 6, [](Player& p, Draw& d) { list(p, d, Form::stream); }},
        {"list_and_wait", 4, [](Player& p, Draw& d) { list(p, d, Form::wait); }},
        {"list_async", 6, [](Player& p, Draw& d) { list(p, d, Form::handle); }},
        {"submit", 3, [](Player& p, Draw& d) { submit(p, d, Form::stream); }},
        {"submit_and_wait", 2, [](Player& p, Draw& d) { submit(p, d, Form::wait); }},
        {"submit_async", 4, [](Player& p, Draw& d) { submit(p, d, Form::handle); }},
        {"list_with_overlap", 1, list_with_overlap},
        {"blocks", 6, [](Player& p, Draw& d) { blocks(p, d, Form::stream); }},
        {"blocks_and_wait", 4, [](Player& p, Draw& d) { blocks(p, d, Form::wait); }},
        {"blocks_async", 6, [](Player& p, Draw& d) { blocks(p, d, Form::handle); }},
        {"snapshot", 6, snapshot},
    };
}

}  // namespace waywiser::fuzz
