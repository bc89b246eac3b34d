// What a program does with handles of transfers in flight.
#include <sys/eventfd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "fuzz/operations.hpp"
#include "waywiser/transfer.h"

namespace waywiser::fuzz {
namespace {

Operation* draw_in_flight(Player& player, Draw& draw) {
    const auto all = player.with_handle();
    return all.empty() ? nullptr : draw.of(all);
}

std::size_t draw_any_stream(Player& player, Draw& draw) {
    return draw.below(player.streams().count());
}

void order_stream(Player& player, Draw& draw, bool source_only) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr) return;
    const std::size_t stream = draw_any_stream(player, draw);
    const double limit = draw.one_in(4) ? 1e-3 : -1;
    bool names_gpu = false;
    player.draw_current_gpu(draw, stream, names_gpu);
    void* const handle = player.streams().handle(stream, names_gpu);
    const std::string call = source_only ? "transfer_wait_source_read" : "transfer_wait";
    const std::string text = call + " in the " + player.streams().name(stream) + ", limit " +
                             std::to_string(limit) + ", of " + operation->text;
    const waywiser_status status = player.timed(text, limit, [&] {
        return source_only ? waywiser_transfer_wait_source_read(operation->transfer, handle, limit)
                           : waywiser_transfer_wait(operation->transfer, handle, limit);
    });
    if (status == WAYWISER_TIMEOUT && limit >= 0) return;
    if (!player.accept_status(*operation, text, status)) return;
    if (limit >= 0) return;  // what follows would depend on the time
    if (source_only) {
        operation->source_read |= player.streams().after(stream);
    } else {
        player.order_after(*operation, stream);
    }
}

void result(Player& player, Draw& draw) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr) return;
    const double limit = draw.of(std::array<double, 3>{0, 1e-4, 5e-3});
    std::size_t moved = 0;
    const std::string text = "transfer_result, limit " + std::to_string(limit) + ", of ";
    const waywiser_status status = player.timed(text + operation->text, limit, [&] {
        return waywiser_transfer_result(operation->transfer, limit, &moved);
    });
    if (status == WAYWISER_TIMEOUT) return;
    if (!player.accept_status(*operation, text, status)) return;
    if (moved != operation->bytes) player.fail("wrong number of bytes", text + operation->text);
    if (waywiser_transfer_done(operation->transfer) != 1) {
        player.fail("transfer_done() is 0 after its result", operation->text);
    }
}

void notify(Player& player, Draw& draw) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr) return;
    if (operation->descriptor < 0) operation->descriptor = eventfd(0, EFD_CLOEXEC);
    const waywiser_status status = player.timed("transfer_notify of " + operation->text, 0, [&] {
        return waywiser_transfer_notify(operation->transfer, operation->descriptor);
    });
    if (player.accept_status(*operation, "transfer_notify", status)) ++operation->notifications;
}

// Its end is known by the descriptor that is notified.
void release(Player& player, Draw& draw) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr || operation->notifications == 0) return;
    player.timed("transfer_release of " + operation->text, 0, [&] {
        waywiser_transfer_release(std::exchange(operation->transfer, nullptr));
        return WAYWISER_OK;
    });
}

void poll_state(Player& player, Draw& draw) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr) return;
    player.timed("transfer_done of " + operation->text, 0, [&] {
        waywiser_transfer_done(operation->transfer);
        waywiser_transfer_source_read_pending(operation->transfer);
        return WAYWISER_OK;
    });
}

void query_transfer(Player& player, Draw& draw) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr) return;
    waywiser_transfer_info info{};
    info.size = sizeof info;
    const std::string text = "transfer_query of " + operation->text;
    const waywiser_status status =
        player.timed(text, 0, [&] { return waywiser_transfer_query(operation->transfer, &info); });
    if (status != WAYWISER_OK || info.ended == 0) return;
    if (!player.accept_status(*operation, text, info.status)) return;
    if (info.moved != operation->bytes || info.bytes < info.moved) {
        player.fail("wrong number of bytes", text + ": " + std::to_string(info.moved));
    }
}

// It may have ended, or be in a stream of the runtime: then it ends as usual.
void cancel_transfer(Player& player, Draw& draw) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr || !operation->marks.empty()) return;
    operation->cancelled = true;
    player.timed("transfer_cancel of " + operation->text, 0,
                 [&] { return waywiser_transfer_cancel(operation->transfer); });
}

void wait_for_any(Player& player, Draw& draw) {
    std::vector<waywiser_transfer*> handles;
    for (const Operation* one : player.with_handle()) handles.push_back(one->transfer);
    if (handles.empty()) return;
    const double limit = draw.of(std::array<double, 3>{0, 1e-4, 5e-3});
    std::size_t first = handles.size();
    const waywiser_status status = player.timed(
        "wait_any, limit " + std::to_string(limit), limit,
        [&] { return waywiser_wait_any(handles.data(), handles.size(), limit, &first); });
    if (status == WAYWISER_TIMEOUT) return;
    if (status != WAYWISER_OK || first >= handles.size() ||
        waywiser_transfer_done(handles[first]) != 1) {
        player.fail("wait_any() returned a transfer that has not ended", std::to_string(first));
    }
}

// Two threads wait for one handle in two ways.
void wait_in_two_threads(Player& player, Draw& draw) {
    Operation* const operation = draw_in_flight(player, draw);
    if (operation == nullptr) return;
    waywiser_transfer* const transfer = operation->transfer;
    const auto kind = draw.one_in(2) ? StreamKind::non_blocking : StreamKind::blocking;
    const auto gpu = static_cast<int>(draw.below(static_cast<std::size_t>(player.round().gpus)));
    const std::size_t stream = player.streams().id(gpu, kind);
    void* const handle = player.streams().handle(stream, true);
    waywiser_status other = WAYWISER_OK;
    std::thread waiting([&] { other = waywiser_transfer_wait(transfer, handle, -1); });
    const std::string text = "transfer_result in two threads of " + operation->text;
    const waywiser_status status =
        player.timed(text, -1, [&] { return waywiser_transfer_result(transfer, -1, nullptr); });
    waiting.join();
    if (!player.accept_status(*operation, text, status)) return;
    if (player.accept_status(*operation, "transfer_wait in another thread", other)) {
        player.order_after(*operation, stream);
    }
}

void mark(Player& player, Draw& draw) {
    Call call;
    call.form = Form::handle;
    call.stream = draw_any_stream(player, draw);
    call.text = "mark";
    call.make = [](const Arguments& a) { return waywiser_mark(a.context, a.stream, a.transfer); };
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < player.operations().size(); ++i) {
        const Operation& operation = player.operations()[i];
        if ((operation.ordered & Streams::only(call.stream)) != 0) before.push_back(i);
    }
    const std::size_t count = player.operations().size();
    player.perform(call, draw);
    if (player.operations().size() != count + 1) return;
    Operation& made = player.operations().back();
    made.marks = std::move(before);
    if (made.transfer == nullptr && !made.failed) player.fail("a mark is no transfer", made.text);
}

}  // namespace

std::vector<OperationKind> handle_operations() {
    return {
        {"wait_in_stream", 6, [](Player& p, Draw& d) { order_stream(p, d, false); }},
        {"wait_source_read", 5, [](Player& p, Draw& d) { order_stream(p, d, true); }},
        {"result", 3, result},
        {"notify", 3, notify},
        {"release", 3, release},
        {"poll", 2, poll_state},
        {"query", 3, query_transfer},
        {"cancel", 2, cancel_transfer},
        {"wait_any", 2, wait_for_any},
        {"wait_in_two_threads", 1, wait_in_two_threads},
        {"mark", 2, mark},
    };
}

}  // namespace waywiser::fuzz
