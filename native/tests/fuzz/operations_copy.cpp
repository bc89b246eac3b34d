// Copies of one range.
#include "fuzz/operations.hpp"
#include "waywiser/transfer.h"

namespace waywiser::fuzz {
namespace {

Call copy_call(Player& player, const Move& move, Form form, double limit) {
    Call call;
    call.form = form;
    call.limit = limit;
    call.moves = {move};
    call.one_range = true;
    call.text = "copy" + form_text(form, limit) + " " + player.memory().text(move.to) + " <- " +
                player.memory().text(move.from);
    call.make = [to = player.memory().data(move.to), from = player.memory().data(move.from),
                 bytes = move.to.bytes, form](const Arguments& a) {
        switch (form) {
            case Form::stream: return waywiser_copy(a.context, to, from, bytes, a.stream);
            case Form::wait:
                return waywiser_copy_and_wait(a.context, to, from, bytes, a.stream, a.limit,
                                              a.ended, a.transfer);
            case Form::handle: break;
        }
        return waywiser_copy_async(a.context, to, from, bytes, a.stream, a.transfer);
    };
    return call;
}

void copy(Player& player, Draw& draw, Form form) {
    const Move move = draw_move(player, draw);
    Call call = copy_call(player, move, form, form == Form::wait ? draw_limit(draw) : -1);
    call.stream = player.draw_stream(draw, call.moves);
    const Memory& memory = player.memory();
    const bool host = memory.on_host(move.to.region) && memory.on_host(move.from.region);
    call.ordered = !(host && form != Form::stream && draw.one_in(4));
    call.held = draw_held(player, draw, call);
    player.perform(call, draw);
}

// Ranges of one region that overlap.
void copy_overlapping(Player& player, Draw& draw) {
    const std::size_t region = draw.of(
        player.memory().regions_of({RegionKind::pageable, RegionKind::pinned, RegionKind::device}));
    const std::size_t most = player.memory().bytes(region) / 2;
    const std::size_t bytes = 2 + draw.bytes(most - 2);
    Move move{draw_span(draw, region, most, bytes), {}};
    move.from = move.to;
    move.from.offset += 1 + draw.below(bytes - 1);
    const auto form = static_cast<Form>(draw.below(3));
    Call call = copy_call(player, move, form, -1);
    call.text += " (overlapping)";
    call.stream = player.draw_stream(draw, call.moves);
    call.invalid = true;
    player.perform(call, draw);
}

}  // namespace

std::vector<OperationKind> copy_operations() {
    return {
        {"copy", 12, [](Player& p, Draw& d) { copy(p, d, Form::stream); }},
        {"copy_and_wait", 8, [](Player& p, Draw& d) { copy(p, d, Form::wait); }},
        {"copy_async", 10, [](Player& p, Draw& d) { copy(p, d, Form::handle); }},
        {"copy_overlapping", 1, copy_overlapping},
    };
}

}  // namespace waywiser::fuzz
