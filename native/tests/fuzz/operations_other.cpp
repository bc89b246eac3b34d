// The program's own work, graphs, contexts, pinned memory, questions that move nothing.
#include <algorithm>
#include <chrono>
#include <thread>

#include "fuzz/operations.hpp"
#include "many_bytes.hpp"
#include "waywiser/transfer.h"

namespace waywiser::fuzz {
namespace {

// A part of memory that work in streams may write.
Span draw_written(Player& player, Draw& draw) {
    Memory& memory = player.memory();
    const std::size_t region =
        draw.of(memory.regions_of({RegionKind::pinned, RegionKind::device, RegionKind::device}));
    return draw_span(draw, region, memory.bytes(region), draw.bytes(memory.bytes(region)));
}

// Work of the program in a stream: it takes a while, then writes.
void own_work(Player& player, Draw& draw) {
    Call call;
    const Span span = draw_written(player, draw);
    call.moves = {{span, {}}};
    call.stream = player.draw_stream(draw, call.moves);
    call.in_context = false;
    const auto pause = std::chrono::microseconds(draw.one_in(2) ? 0 : draw.below(3000));
    call.text = "own work of " + std::to_string(pause.count()) + " us that writes " +
                player.memory().text(span);
    const auto content = std::make_shared<std::vector<std::byte>>();
    Draw own(draw.next());
    call.expect = [&player, content, span, own]() mutable {
        *content = player.memory().expect_new(span, own);
    };
    call.make = [&player, content, span, pause, stream = call.stream](const Arguments&) {
        player.streams().enqueue(stream, [=, data = player.memory().data(span)] {
            std::this_thread::sleep_for(pause);
            if (!content->empty()) test::copy_bytes(data, content->data(), content->size());
        });
        return WAYWISER_OK;
    };
    player.perform(call, draw);
}

void host_write(Player& player, Draw& draw) {
    Memory& memory = player.memory();
    const std::size_t region =
        draw.of(memory.regions_of({RegionKind::pageable, RegionKind::pinned, RegionKind::mixed}));
    const Span span =
        draw_span(draw, region, memory.bytes(region), draw.bytes(memory.bytes(region)));
    player.make_free(span, true);
    memory.write(span, draw);
}

Move draw_recorded(Player& player, Draw& draw) {
    Memory& memory = player.memory();
    const auto regions = memory.regions_of({RegionKind::pinned, RegionKind::device});
    const std::size_t to = draw.of(regions);
    std::size_t from = draw.of(regions);
    if (from == to) from = regions[to == regions[0] ? 1 : 0];
    const std::size_t bytes = draw.bytes(std::min(memory.bytes(to), memory.bytes(from)));
    return {draw_span(draw, to, memory.bytes(to), bytes),
            draw_span(draw, from, memory.bytes(from), bytes)};
}

waywiser_status record_copies(Player& player, const std::vector<Move>& moves,
                              waywiser_context* context, void* stream, bool waits) {
    for (const Move& move : moves) {
        void* const to = player.memory().data(move.to);
        const void* const from = player.memory().data(move.from);
        waywiser_transfer* left = nullptr;
        const waywiser_status status =
            waits ? waywiser_copy_and_wait(context, to, from, move.to.bytes, stream, 1, nullptr,
                                           &left)
                  : waywiser_copy(context, to, from, move.to.bytes, stream);
        if (status != WAYWISER_OK) return status;
        if (left != nullptr) player.fail("a recorded copy has a handle", "");
    }
    return WAYWISER_OK;
}

// Copies that are recorded in a graph, which is then launched.
void graph(Player& player, Draw& draw) {
    Call call;
    for (std::size_t left = draw.between(1, 4); left > 0; --left) {
        call.moves.push_back(draw_recorded(player, draw));
    }
    call.stream = player.draw_stream(draw, call.moves);
    Streams& streams = player.streams();
    const bool waits = draw.one_in(3);
    const auto kind = draw.one_in(2) ? StreamKind::other_non_blocking : StreamKind::blocking;
    const std::size_t recording = streams.id(streams.gpu(call.stream), kind);
    call.text = "graph of " + std::to_string(call.moves.size()) + " copies, recorded in the " +
                streams.name(recording) + (waits ? " by copy_and_wait" : "");
    for (const Move& move : call.moves) {
        call.text +=
            ", " + player.memory().text(move.to) + " <- " + player.memory().text(move.from);
    }
    const int gpu = streams.gpu(call.stream);
    call.make = [&player, &streams, moves = call.moves, recording, waits, gpu,
                 launched = streams.kind(call.stream) == StreamKind::per_thread
                                ? WAYWISER_PER_THREAD_STREAM
                                : streams.handle(call.stream, false)](const Arguments& a) {
        waywiser_status status = WAYWISER_OK;
        try {
            const gpu::Graph recorded(streams.own(recording), [&] {
                status =
                    record_copies(player, moves, a.context, streams.handle(recording, true), waits);
            });
            if (status != WAYWISER_OK) return status;
            const auto whole = std::make_shared<gpu::ExecutableGraph>(recorded);
            whole->launch(gpu::Stream(gpu, launched));
            player.keep(whole);
        } catch (const gpu::Error&) {
            if (!player.round().faulty) throw;
            return WAYWISER_GPU;
        }
        return status;
    };
    player.perform(call, draw);
}

// Memory of the library that is freed as soon as the copy of it is submitted.
void pinned_memory(Player& player, Draw& draw) {
    Memory& memory = player.memory();
    const std::size_t region = draw.of(memory.regions_of({RegionKind::device}));
    const Span to = draw_span(draw, region, memory.bytes(region), draw.bytes(memory.bytes(region)));
    Call call;
    call.moves = {{to, {}}};
    call.stream = player.draw_stream(draw, call.moves);
    call.text = "pinned_alloc, copy " + memory.text(to) + " <- it, pinned_free";
    const auto content = std::make_shared<std::vector<std::byte>>();
    Draw own(draw.next());
    call.expect = [&player, content, to, own]() mutable {
        *content = player.memory().expect_new(to, own);
    };
    call.make = [content, data = memory.data(to)](const Arguments& a) {
        void* made = nullptr;
        waywiser_status status = waywiser_pinned_alloc(content->size(), -1, &made);
        if (status != WAYWISER_OK) return status;
        if (!content->empty()) test::copy_bytes(made, content->data(), content->size());
        status = waywiser_copy(a.context, data, made, content->size(), a.stream);
        waywiser_pinned_free(made);
        return status;
    };
    player.perform(call, draw);
}

void change_registrations(Player& player, Draw& draw) {
    Memory& memory = player.memory();
    const std::size_t mixed = memory.regions_of({RegionKind::mixed}).front();
    player.make_free({mixed, 0, memory.bytes(mixed)}, true);
    player.timed("registers other parts of memory", -1, [&] {
        try {
            memory.register_again(draw);
        } catch (const gpu::Error&) {
            if (!player.round().faulty) throw;
        }
        return WAYWISER_OK;
    });
}

waywiser_status describe(Player& player, const Span& span) {
    const Memory& memory = player.memory();
    waywiser_description description{};
    description.size = sizeof description;
    const waywiser_status status = waywiser_describe(memory.data(span), span.bytes, &description);
    const RegionKind kind = memory.kind(span.region);
    if (status != WAYWISER_OK || kind == RegionKind::mixed || span.bytes == 0) return status;
    const auto expected = kind == RegionKind::pageable  ? WAYWISER_PAGEABLE
                          : kind == RegionKind::pinned  ? WAYWISER_PINNED
                          : kind == RegionKind::managed ? WAYWISER_MANAGED
                                                        : WAYWISER_DEVICE;
    if (description.kind != expected || description.gpu != memory.gpu(span.region)) {
        player.fail("describe() is wrong", memory.text(span) + ": kind " +
                                               std::to_string(description.kind) + ", GPU " +
                                               std::to_string(description.gpu));
    }
    return WAYWISER_OK;
}

waywiser_status usage(Player& player, waywiser_context* context) {
    waywiser_usage used{};
    used.size = sizeof used;
    const waywiser_status status = waywiser_context_usage(context, &used);
    // One slot may be larger than all that is allowed.
    constexpr std::size_t kLargestSlot = 8 * kMiB;
    if (used.threads > used.most_threads ||
        used.pinned_bytes > std::max(used.most_pinned_bytes, kLargestSlot)) {
        player.fail("a context uses more than it may",
                    std::to_string(used.threads) + " of " + std::to_string(used.most_threads) +
                        " threads, " + std::to_string(used.pinned_bytes) + " of " +
                        std::to_string(used.most_pinned_bytes) + " pinned bytes");
    }
    return status;
}

void query(Player& player, Draw& draw) {
    const Move move = draw_move(player, draw);
    const Memory& memory = player.memory();
    void* const to = memory.data(move.to);
    const void* const from = memory.data(move.from);
    const std::size_t bytes = move.to.bytes;
    const std::size_t which = draw.below(7);
    const std::string text = "query " + std::to_string(which) + " of " + memory.text(move.to) +
                             " <- " + memory.text(move.from);
    player.query(text, draw, [&, which](waywiser_context* context) {
        std::array<char, 512> answer{};
        std::size_t needed = 0;
        waywiser_method method{};
        switch (which) {
            case 0: return waywiser_explain(context, to, from, bytes, answer.data(), answer.size());
            case 1: return waywiser_copy_method(context, to, from, bytes, &method);
            case 2:
                return waywiser_explain_batch(context, &to, &from, &bytes, 1, answer.data(),
                                              answer.size(), &needed);
            case 3: return describe(player, move.from);
            case 4: return usage(player, context);
            case 5:
                return waywiser_context_warnings(context, answer.data(), answer.size(), &needed);
            default: return waywiser_require_gpu(context);
        }
    });
}

}  // namespace

std::vector<OperationKind> other_operations() {
    return {
        {"own_work", 8, own_work},
        {"host_write", 3, host_write},
        {"graph", 3, graph},
        {"pinned_memory", 1, pinned_memory},
        {"registrations", 1, change_registrations},
        {"query", 2, query},
        {"replace_context", 1, [](Player& p, Draw& d) { p.replace_context(d); }},
        {"settle", 2, [](Player& p, Draw&) { p.settle(); }},
    };
}

}  // namespace waywiser::fuzz
