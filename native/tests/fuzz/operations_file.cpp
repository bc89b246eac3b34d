// Reads and writes of files.
#include "fuzz/operations.hpp"
#include "waywiser/transfer.h"

namespace waywiser::fuzz {
namespace {

std::size_t draw_memory(Player& player, Draw& draw) {
    return draw.of(
        player.memory().regions_of({RegionKind::pageable, RegionKind::pinned, RegionKind::mixed,
                                    RegionKind::managed, RegionKind::device, RegionKind::device}));
}

// The file with all that it may have.
Span whole_file(std::size_t file) { return {file, 0, std::size_t{1} << 60}; }

// Draws the stream of a call of a file, which its limit and form are known of.
void draw_order(Player& player, Draw& draw, Call& call, std::size_t region) {
    call.stream = player.draw_stream(draw, call.moves);
    call.ordered = !(player.memory().on_host(region) && draw.one_in(3));
    call.held = draw_held(player, draw, call);
}

void read(Player& player, Draw& draw, Form form) {
    Memory& memory = player.memory();
    const std::size_t file = memory.regions_of({RegionKind::file}).front();
    player.make_free(whole_file(file), false);  // its size is known then, also after a failure
    const std::size_t region = draw_memory(player, draw);
    const std::size_t requested = draw.bytes(memory.bytes(region));
    const std::size_t offset = draw.below(memory.bytes(file) + 1 + draw.below(100));
    const std::size_t there = memory.bytes(file) > offset ? memory.bytes(file) - offset : 0;
    const Span to = draw_span(draw, region, memory.bytes(region), requested);
    const std::size_t bytes = std::min(requested, there);
    Call call;
    call.form = form;
    call.limit = form == Form::wait ? draw_limit(draw) : -1;
    call.moves = {{{region, to.offset, bytes}, {file, offset, bytes}}};
    // More than what it reads: a change of the file's end changes what is read.
    call.file = Span{file, offset, requested + 1};
    call.text = "read" + form_text(form, call.limit) + " " + std::to_string(requested) +
                " bytes, " + memory.text(call.moves[0].to) + " <- " +
                memory.text(call.moves[0].from);
    draw_order(player, draw, call, region);
    call.make = [=, data = memory.data(to), descriptor = memory.file(file)](const Arguments& a) {
        if (form == Form::wait) {
            return waywiser_read_and_wait(a.context, descriptor, offset, data, requested, a.stream,
                                          a.limit, a.ended, a.moved, a.transfer);
        }
        return waywiser_read(a.context, descriptor, offset, data, requested, a.stream, a.moved,
                             a.transfer);
    };
    player.perform(call, draw);
}

void write(Player& player, Draw& draw, Form form) {
    Memory& memory = player.memory();
    const std::size_t file = memory.regions_of({RegionKind::file}).front();
    player.make_free(whole_file(file), false);  // its size is known then, also after a failure
    const std::size_t region = draw_memory(player, draw);
    const std::size_t bytes = draw.bytes(memory.bytes(region));
    std::size_t offset = draw.below(std::min(memory.bytes(file) + 9000, memory.most_bytes()));
    if (draw.one_in(3)) offset = offset / 4096 * 4096;
    const Span from = draw_span(draw, region, memory.bytes(region), bytes);
    std::uint32_t flags = draw.one_in(6) ? WAYWISER_WRITE_TRUNCATE : 0;
    if (draw.one_in(8)) flags |= WAYWISER_WRITE_SYNC;
    Call call;
    call.form = form;
    call.limit = form == Form::wait ? draw_limit(draw) : -1;
    call.moves = {{{file, offset, bytes}, from}};
    call.file = Span{file, offset, bytes};
    const std::size_t end = offset + bytes;
    const bool truncates = (flags & WAYWISER_WRITE_TRUNCATE) != 0;
    if (truncates || (bytes != 0 && end > memory.bytes(file))) {
        call.file_end = end;
        call.file = whole_file(file);
    }
    call.text = "write" + form_text(form, call.limit) + " flags " + std::to_string(flags) + ", " +
                memory.text(call.moves[0].to) + " <- " + memory.text(from);
    draw_order(player, draw, call, region);
    call.make = [=, data = memory.data(from), descriptor = memory.file(file)](const Arguments& a) {
        if (form == Form::wait) {
            return waywiser_write_and_wait(a.context, descriptor, offset, data, bytes, flags,
                                           a.stream, a.limit, a.ended, a.moved, a.transfer);
        }
        return waywiser_write(a.context, descriptor, offset, data, bytes, flags, a.stream, a.moved,
                              a.transfer);
    };
    player.perform(call, draw);
}

}  // namespace

std::vector<OperationKind> file_operations() {
    return {
        {"read", 3, [](Player& p, Draw& d) { read(p, d, Form::stream); }},
        {"read_and_wait", 3, [](Player& p, Draw& d) { read(p, d, Form::wait); }},
        {"read_async", 3, [](Player& p, Draw& d) { read(p, d, Form::handle); }},
        {"write", 3, [](Player& p, Draw& d) { write(p, d, Form::stream); }},
        {"write_and_wait", 3, [](Player& p, Draw& d) { write(p, d, Form::wait); }},
        {"write_async", 3, [](Player& p, Draw& d) { write(p, d, Form::handle); }},
    };
}

}  // namespace waywiser::fuzz
