#include "submission.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stream_follower.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Smaller copies are synchronous for any memory, and detecting its kind would take longer.
constexpr std::size_t kInline = std::size_t{8} << 20;

waywiser_status copy_listed(waywiser_context* context, const Submission& copy,
                            waywiser_transfer** transfer) {
    if (copy.list.count() > 0) {
        return waywiser_copy_batch(context, copy.list.to.data(), copy.list.from.data(),
                                   copy.list.sizes.data(), copy.list.count(), copy.streams.carrier,
                                   transfer);
    }
    const BlockList& some = copy.blocks;
    return waywiser_copy_blocks(
        context, some.to, static_cast<std::size_t>(some.to_stride), some.to_blocks, some.from,
        static_cast<std::size_t>(some.from_stride), some.from_blocks, some.block,
        some.to_index.data(), some.from_index.data(), some.count(), copy.streams.carrier, transfer);
}

waywiser_status blocking(waywiser_context* context, const Submission& copy) {
    if (copy.listed()) return copy_listed(context, copy, nullptr);
    return waywiser_copy(context, copy.to, copy.from, copy.bytes, copy.streams.carrier);
}

waywiser_status asynchronous(waywiser_context* context, const Submission& copy,
                             waywiser_transfer** transfer) {
    if (copy.listed()) return copy_listed(context, copy, transfer);
    return waywiser_copy_async(context, copy.to, copy.from, copy.bytes, copy.streams.carrier,
                               transfer);
}

// For a copy between GPUs, whose marks are null only while the stream is captured.
bool is_captured(waywiser_context* context, void* stream) {
    waywiser_transfer* mark = nullptr;
    if (waywiser_mark(context, stream, &mark) != WAYWISER_OK) return false;
    const bool captured = mark == nullptr;
    waywiser_transfer_release(mark);
    return captured;
}

// Orders the carrier after the work in the other stream, if there is any. `captured`: the carrier
// is being captured, and nothing was done: the library records the copy in it, or rejects it.
waywiser_status order_before(waywiser_context* context, const Streams& streams, bool& captured) {
    captured = false;
    if (!streams.other) return WAYWISER_OK;
    waywiser_transfer* mark = nullptr;
    waywiser_status status = waywiser_mark(context, *streams.other, &mark);
    if (status != WAYWISER_OK) return status;
    if (mark == nullptr) return kOtherCaptured;
    if (waywiser_transfer_done(mark) == 0) {
        captured = is_captured(context, streams.carrier);
        if (!captured) status = waywiser_transfer_wait(mark, streams.carrier, kNoLimit);
    }
    waywiser_transfer_release(mark);
    return status;
}

// Copies a small amount between host and GPU in the calling thread, until they have arrived.
void run_inline(ContextState& context, Submission& copy) {
    waywiser_transfer* left = nullptr;
    check_use(use(context, [&](waywiser_context* c) {
        return waywiser_copy_and_wait(c, copy.to, copy.from, copy.bytes, copy.streams.carrier,
                                      kWaitSlice, &left);
    }));
    if (left == nullptr) return;
    wait_or_keep(std::make_shared<PendingTransfer>(left, copy.bytes, std::move(copy.kept).all(),
                                                   copy.streams));
}

// Calls part(context, at, bytes) for all of the copy, and handles signals between parts.
template <class Part>
void run_in_parts(ContextState& context, const Submission& copy, const Part& part) {
    const std::size_t most = copy.listed() ? copy.bytes : kPart;
    for (std::size_t at = 0; at < copy.bytes; at += most) {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        const std::size_t bytes = std::min(most, copy.bytes - at);
        check_use(use(context, [&](waywiser_context* c) { return part(c, at, bytes); }), at);
    }
}

waywiser_status copy_part(waywiser_context* context, const Submission& copy, std::size_t at,
                          std::size_t bytes) {
    if (copy.listed()) return blocking(context, copy);
    return waywiser_copy(context, static_cast<std::byte*>(copy.to) + at,
                         static_cast<const std::byte*>(copy.from) + at, bytes,
                         copy.streams.carrier);
}

// Pageable memory and a GPU: the calling thread helps. The host memory is not in use any more when
// a part returns; GPU memory is until the stream has reached the end of the part.
void run_helping(ContextState& context, Submission& copy) {
    wait_for_stream(context, copy.streams.carrier);
    StreamFollower follower(copy.streams, std::move(copy.kept.to));
    run_in_parts(context, copy, [&](waywiser_context* c, std::size_t at, std::size_t bytes) {
        const waywiser_status status = copy_part(c, copy, at, bytes);
        return status == WAYWISER_OK && !copy.to_host ? follower.mark(c) : status;
    });
}

// Only host memory. Small amounts are copied without the library, which may use a GPU.
void run_on_host(ContextState& context, Submission& copy) {
    // The library rejects a stream that is captured.
    const bool in_stream = copy.names_stream && !wait_for_stream(context, copy.streams.carrier);
    if (!in_stream) copy.streams.carrier = WAYWISER_NO_STREAM;
    run_in_parts(context, copy, [&](waywiser_context* c, std::size_t at, std::size_t bytes) {
        if (in_stream || bytes >= kInline) return copy_part(c, copy, at, bytes);
        if (!copy.listed()) {
            std::memcpy(static_cast<std::byte*>(copy.to) + at,
                        static_cast<const std::byte*>(copy.from) + at, bytes);
        }
        for (std::size_t i = 0; i < copy.list.count(); ++i) {
            std::memcpy(copy.list.to[i], copy.list.from[i], copy.list.sizes[i]);
        }
        return WAYWISER_OK;
    });
}

// Between GPUs: the streams continue after it, and the arrays are kept until then.
void run_between_gpus(ContextState& context, Submission& copy) {
    StreamFollower follower(copy.streams, std::move(copy.kept).all());
    check_use(use(context, [&](waywiser_context* c) {
        bool captured = false;
        waywiser_status status = order_before(c, copy.streams, captured);
        if (status == WAYWISER_OK) status = blocking(c, copy);  // captured: recorded, or rejected
        if (status == WAYWISER_OK) status = follower.mark(c);
        if (status == WAYWISER_OK && copy.streams.other) {
            status = follower.hold_back(*copy.streams.other);
        }
        return status;
    }));
}

// Between a GPU and host memory that it can access: no CPU copies.
void run_submitting(ContextState& context, Submission& copy) {
    waywiser_transfer* transfer = nullptr;
    const waywiser_status status = use(context, [&](waywiser_context* c) {
        bool captured = false;
        waywiser_status now = order_before(c, copy.streams, captured);
        if (now == WAYWISER_OK && captured) return blocking(c, copy);
        if (now == WAYWISER_OK) now = asynchronous(c, copy, &transfer);
        if (now == WAYWISER_UNSUPPORTED && is_captured(c, copy.streams.carrier)) {
            return blocking(c, copy);  // recorded, or rejected with the reason
        }
        return now;
    });
    if (transfer != nullptr) {
        const auto pending = std::make_shared<PendingTransfer>(
            transfer, copy.bytes, std::move(copy.kept).all(), copy.streams);
        if (status == WAYWISER_OK) {
            wait_or_keep(pending);
        } else {
            keep(pending);
        }
    }
    check_use(status);
}

waywiser_status is_pageable_at(const void* memory, bool& pageable) {
    waywiser_description found{};
    found.size = sizeof found;
    const waywiser_status status = waywiser_describe(memory, 1, &found);
    pageable = found.kind == WAYWISER_PAGEABLE;
    return status;
}

// Queries only both ends of a range: all of it would take hundreds of runtime calls.
waywiser_status is_pageable(const void* memory, std::size_t bytes, bool& pageable) {
    const waywiser_status status = is_pageable_at(memory, pageable);
    if (status != WAYWISER_OK || !pageable) return status;
    return is_pageable_at(static_cast<const std::byte*>(memory) + bytes - 1, pageable);
}

// Whether the host's side of the copy is pageable. If it is not, or there are too many arrays to
// query, a GPU may still use it after a call of the library returns.
bool is_pageable(const Submission& copy) {
    constexpr std::size_t kMostLooks = 64;
    const std::size_t count = copy.pieces();
    if (copy.operands > 1 && count > kMostLooks) return false;
    bool pageable = true;
    waywiser_status status = WAYWISER_OK;
    {
        const GilRelease unlocked;
        if (!copy.listed()) {
            status = is_pageable(copy.to_host ? copy.to : copy.from, copy.bytes, pageable);
        }
        // Pieces of one array are in one allocation: the first and the last are enough.
        const std::size_t step = copy.operands > 1 || count < 2 ? 1 : count - 1;
        for (std::size_t i = 0; i < count && pageable && status == WAYWISER_OK; i += step) {
            const PieceView piece = copy.piece(i);
            status = is_pageable(copy.to_host ? piece.to : piece.from, piece.bytes, pageable);
        }
    }
    check(status);
    return pageable;
}

}  // namespace

void raise_other_captured() {
    raise(Failure::unsupported,
          {.what = "the stream of the destination is being captured, that of the source is not",
           .remedy = "copy before the capture, or record the copy with stream="});
}

void run(ContextState& context, Submission& copy) {
    if (copy.bytes == 0) return;
    if (copy.to_host && copy.from_host) return run_on_host(context, copy);
    if (!copy.to_host && !copy.from_host) return run_between_gpus(context, copy);
    if (copy.bytes < kInline && !copy.listed()) return run_inline(context, copy);
    return is_pageable(copy) ? run_helping(context, copy) : run_submitting(context, copy);
}

std::shared_ptr<PendingTransfer> start(ContextState& context, Submission& copy) {
    if (copy.streams.gpu == kSomeGpu && copy.bytes > 0) {
        const PieceView first =
            copy.listed() ? copy.piece(0) : PieceView{copy.to, copy.from, copy.bytes};
        copy.streams.gpu = gpu_at(copy.to_host ? first.from : first.to);
    }
    waywiser_transfer* transfer = nullptr;
    if (copy.bytes > 0) {
        check_use(use(context, [&](waywiser_context* c) {
            bool captured = false;  // then the library rejects it
            const waywiser_status status = order_before(c, copy.streams, captured);
            return status == WAYWISER_OK ? asynchronous(c, copy, &transfer) : status;
        }));
    }
    auto pending = std::make_shared<PendingTransfer>(transfer, copy.bytes,
                                                     std::move(copy.kept).all(), copy.streams);
    keep(pending);
    return pending;
}

bool wait_for_stream(ContextState& context, void* stream) {
    waywiser_transfer* mark = nullptr;
    bool marked = false;
    const waywiser_status status = use(context, [&](waywiser_context* c) {
        waywiser_status now = waywiser_mark(c, stream, &mark);
        marked = mark != nullptr;
        if (now != WAYWISER_OK || mark == nullptr) return now;
        now = waywiser_transfer_result(mark, kWaitSlice, nullptr);
        if (now == WAYWISER_TIMEOUT) return WAYWISER_OK;
        waywiser_transfer_release(std::exchange(mark, nullptr));
        return now;
    });
    if (mark != nullptr) PendingTransfer(mark, 0, {}, {}).wait(std::nullopt);
    check_use(status);
    return marked;
}

std::size_t wait_or_keep(const std::shared_ptr<PendingTransfer>& pending) {
    try {
        return pending->wait(std::nullopt);
    } catch (...) {
        keep(pending);  // it continues on its own, unless it has ended
        throw;
    }
}

}  // namespace waywiser::python
