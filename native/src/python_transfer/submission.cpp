#include "submission.hpp"

#include <algorithm>
#include <utility>

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Below, the library copies at once whatever memory it is, and to ask what it is takes longer.
constexpr std::size_t kInline = std::size_t{4} << 20;

waywiser_status order_before(waywiser_context* context, const Streams& streams) {
    if (!streams.other) return WAYWISER_OK;
    waywiser_transfer* mark = nullptr;
    waywiser_status status = waywiser_mark(context, *streams.other, &mark);
    if (status != WAYWISER_OK || mark == nullptr) return status;
    status = waywiser_transfer_wait(mark, streams.carrier);
    waywiser_transfer_release(mark);
    return status;
}

waywiser_status blocking(waywiser_context* context, const Submission& copy) {
    if (!copy.listed()) {
        return waywiser_copy(context, copy.to, copy.from, copy.bytes, copy.streams.carrier);
    }
    return waywiser_copy_batch(context, copy.list.to.data(), copy.list.from.data(),
                               copy.list.sizes.data(), copy.list.count(), copy.streams.carrier,
                               nullptr);
}

waywiser_status asynchronous(waywiser_context* context, const Submission& copy,
                             waywiser_transfer** transfer) {
    if (!copy.listed()) {
        return waywiser_copy_async(context, copy.to, copy.from, copy.bytes, copy.streams.carrier,
                                   transfer);
    }
    return waywiser_copy_batch(context, copy.list.to.data(), copy.list.from.data(),
                               copy.list.sizes.data(), copy.list.count(), copy.streams.carrier,
                               transfer);
}

bool is_captured(waywiser_context* context, void* stream) {
    waywiser_transfer* mark = nullptr;
    if (waywiser_mark(context, stream, &mark) != WAYWISER_OK) return false;
    const bool captured = mark == nullptr;
    waywiser_transfer_release(mark);
    return captured;
}

// Copies of few bytes between host and GPU: by the calling thread, until they have arrived.
void run_inline(ContextState& context, Submission& copy) {
    waywiser_transfer* left = nullptr;
    check_use(use(context, [&](waywiser_context* c) {
        return waywiser_copy_and_wait(c, copy.to, copy.from, copy.bytes, copy.streams.carrier,
                                      kWaitSlice, &left);
    }));
    if (left == nullptr) return;
    wait_or_keep(std::make_shared<Flight>(left, copy.bytes, std::move(copy.held), copy.streams));
}

// Pageable memory, or the host alone: the calling thread helps, in parts between signals.
void run_helping(ContextState& context, Submission& copy) {
    if (!copy.to_host || !copy.from_host) wait_for_stream(context, copy.streams.carrier);
    const std::size_t part = copy.listed() ? copy.bytes : kPart;
    for (std::size_t at = 0; at < copy.bytes; at += part) {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        check_use(use(context,
                      [&](waywiser_context* c) {
                          return copy.listed()
                                     ? blocking(c, copy)
                                     : waywiser_copy(c, static_cast<std::byte*>(copy.to) + at,
                                                     static_cast<const std::byte*>(copy.from) + at,
                                                     std::min(part, copy.bytes - at),
                                                     copy.streams.carrier);
                      }),
                  at);
    }
    if (!copy.to_host) keep_until_reached(context, copy.streams, std::move(copy.held));
}

// Copies that no CPU takes part in. With both sides on GPUs the streams go on after it.
void run_submitting(ContextState& context, Submission& copy) {
    const bool waits = copy.to_host || copy.from_host;
    waywiser_transfer* transfer = nullptr;
    const waywiser_status status = use(context, [&](waywiser_context* c) {
        if (copy.streams.other && is_captured(c, copy.streams.carrier)) return blocking(c, copy);
        waywiser_status now = order_before(c, copy.streams);
        if (now == WAYWISER_OK) now = asynchronous(c, copy, &transfer);
        if (now == WAYWISER_UNSUPPORTED && is_captured(c, copy.streams.carrier)) {
            return blocking(c, copy);  // is recorded, or refused with the reason
        }
        if (now != WAYWISER_OK || waits) return now;
        now = waywiser_transfer_wait(transfer, copy.streams.carrier);
        if (now == WAYWISER_OK && copy.streams.other) {
            now = waywiser_transfer_wait(transfer, *copy.streams.other);
        }
        return now;
    });
    if (transfer != nullptr) {
        const auto flight =
            std::make_shared<Flight>(transfer, copy.bytes, std::move(copy.held), copy.streams);
        if (status == WAYWISER_OK && waits) {
            wait_or_keep(flight);
        } else {
            keep(flight);
        }
    }
    check_use(status);
}

bool is_pinned(const Submission& copy) {
    waywiser_description found{};
    found.size = sizeof found;
    const std::size_t bytes = copy.listed() ? 1 : copy.bytes;
    check(waywiser_describe(copy.host_side(), bytes, &found));
    return found.kind == WAYWISER_PINNED;
}

}  // namespace

const void* Submission::host_side() const {
    if (to_host) return listed() ? list.to.front() : to;
    return listed() ? list.from.front() : from;
}

void run(ContextState& context, Submission& copy) {
    if (copy.bytes == 0) return;
    if (copy.to_host && copy.from_host) return run_helping(context, copy);
    if (!copy.to_host && !copy.from_host) return run_submitting(context, copy);
    if (copy.bytes < kInline && !copy.listed()) return run_inline(context, copy);
    return is_pinned(copy) ? run_submitting(context, copy) : run_helping(context, copy);
}

std::shared_ptr<Flight> start(ContextState& context, Submission& copy) {
    waywiser_transfer* transfer = nullptr;
    if (copy.bytes > 0) {
        check_use(use(context, [&](waywiser_context* c) {
            const waywiser_status status = order_before(c, copy.streams);
            return status == WAYWISER_OK ? asynchronous(c, copy, &transfer) : status;
        }));
    }
    auto flight =
        std::make_shared<Flight>(transfer, copy.bytes, std::move(copy.held), copy.streams);
    keep(flight);
    return flight;
}

void wait_for_stream(ContextState& context, void* stream) {
    waywiser_transfer* mark = nullptr;
    const waywiser_status status = use(context, [&](waywiser_context* c) {
        waywiser_status now = waywiser_mark(c, stream, &mark);
        if (now != WAYWISER_OK || mark == nullptr) return now;
        now = waywiser_transfer_result(mark, kWaitSlice, nullptr);
        if (now == WAYWISER_TIMEOUT) return WAYWISER_OK;
        waywiser_transfer_release(std::exchange(mark, nullptr));
        return now;
    });
    if (mark != nullptr) Flight(mark, 0, {}, {}).wait(std::nullopt);
    check_use(status);
}

void keep_until_reached(ContextState& context, const Streams& streams, Held held) {
    waywiser_transfer* mark = nullptr;
    check_use(use(context,
                  [&](waywiser_context* c) { return waywiser_mark(c, streams.carrier, &mark); }));
    keep(std::make_shared<Flight>(mark, 0, std::move(held), streams));
}

std::size_t wait_or_keep(const std::shared_ptr<Flight>& flight) {
    try {
        return flight->wait(std::nullopt);
    } catch (...) {
        keep(flight);  // it goes on without us, unless it has ended
        throw;
    }
}

}  // namespace waywiser::python
