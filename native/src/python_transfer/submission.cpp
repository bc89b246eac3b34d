#include "submission.hpp"

#include <cstring>
#include <utility>

#include "parted_transfer.hpp"
#include "stream_follower.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Releasing the GIL would take a good part of the time that so few bytes take.
constexpr std::size_t kWithGil = std::size_t{16} << 10;

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
        some.to_index.entries.data(), some.from_index.entries.data(), some.count(),
        copy.streams.carrier, transfer);
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

// Whether host memory is copied without the library, which may use a GPU.
bool is_inline(const Submission& copy) {
    return copy.to_host && copy.from_host && !copy.names_stream && copy.bytes < kInline;
}

void run_on_host(ContextState& context, const Submission& copy) {
    if (!copy.listed()) return copy_on_host(context, copy.to, copy.from, copy.bytes);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    check_use(use_on_host(context, [&] {
        context.copy_on_host(copy.bytes, [&] {
            for (std::size_t i = 0; i < copy.list.count(); ++i) {
                std::memcpy(copy.list.to[i], copy.list.from[i], copy.list.sizes[i]);
            }
        });
    }));
}

waywiser_status copy_and_wait(waywiser_context* context, const Submission& copy, std::size_t at,
                              std::size_t bytes, int* ended, waywiser_transfer** left) {
    void* const stream = copy.streams.carrier;
    if (!copy.listed()) {
        return waywiser_copy_and_wait(context, static_cast<std::byte*>(copy.to) + at,
                                      static_cast<const std::byte*>(copy.from) + at, bytes, stream,
                                      kWaitSlice, ended, left);
    }
    if (copy.list.count() > 0) {
        return waywiser_copy_batch_and_wait(context, copy.list.to.data(), copy.list.from.data(),
                                            copy.list.sizes.data(), copy.list.count(), stream,
                                            kWaitSlice, ended, left);
    }
    const BlockList& some = copy.blocks;
    return waywiser_copy_blocks_and_wait(
        context, some.to, static_cast<std::size_t>(some.to_stride), some.to_blocks, some.from,
        static_cast<std::size_t>(some.from_stride), some.from_blocks, some.block,
        some.to_index.entries.data(), some.from_index.entries.data(), some.count(), stream,
        kWaitSlice, ended, left);
}

// With the host on one side, or on both.
void run_with_host(ContextState& context, Submission& copy) {
    move_in_parts(context,
                  {.bytes = copy.bytes,
                   .most = copy.listed() ? copy.bytes : kPart,
                   .to_gpu = !copy.to_host,
                   .streams = copy.streams,
                   .kept = std::move(copy.kept)},
                  [&](waywiser_context* c, std::size_t at, std::size_t bytes, PartResult& result) {
                      const waywiser_status status =
                          copy_and_wait(c, copy, at, bytes, &result.ended, &result.left);
                      if (status == WAYWISER_OK) result.moved = bytes;
                      return status;
                  });
}

// Between GPUs: the streams continue after it, and the arrays are kept until then.
void run_between_gpus(ContextState& context, Submission& copy) {
    StreamFollower follower(copy.streams, std::move(copy.kept).all());
    const waywiser_status made = use(context, [&](waywiser_context* c) {
        bool captured = false;
        waywiser_status status = order_before(c, copy.streams, captured);
        if (status == WAYWISER_OK) status = blocking(c, copy);  // captured: recorded, or rejected
        if (status == WAYWISER_OK) status = follower.mark(c);
        if (status == WAYWISER_OK && copy.streams.other) {
            status = follower.hold_back(*copy.streams.other);
        }
        return status;
    });
    follower.note(made);
    check_use(made);
}

waywiser_status explain_in(waywiser_context* context, const Submission& copy, std::string& text,
                           std::size_t& needed) {
    if (!copy.listed()) {
        needed = 0;
        return waywiser_explain(context, copy.to, copy.from, copy.bytes, text.data(), text.size());
    }
    if (copy.list.count() > 0) {
        return waywiser_explain_batch(context, copy.list.to.data(), copy.list.from.data(),
                                      copy.list.sizes.data(), copy.list.count(), text.data(),
                                      text.size(), &needed);
    }
    const BlockList& some = copy.blocks;
    return waywiser_explain_blocks(
        context, some.to, static_cast<std::size_t>(some.to_stride), some.to_blocks, some.from,
        static_cast<std::size_t>(some.from_stride), some.from_blocks, some.block,
        some.to_index.entries.data(), some.from_index.entries.data(), some.count(), text.data(),
        text.size(), &needed);
}

waywiser_status beside(waywiser_context* context, const Submission& copy,
                       waywiser_transfer** transfer) {
    if (copy.listed()) {
        return waywiser_snapshot(context, copy.list.to.data(), copy.list.from.data(),
                                 copy.list.sizes.data(), copy.list.count(), copy.streams.carrier,
                                 transfer);
    }
    return waywiser_snapshot(context, &copy.to, &copy.from, &copy.bytes, 1, copy.streams.carrier,
                             transfer);
}

// Starts a copy by a call of the library and keeps it.
template <class Start>
std::shared_ptr<PendingTransfer> start_by(ContextState& context, Submission& copy,
                                          const Start& start) {
    if (copy.streams.gpu == kSomeGpu && copy.bytes > 0) {
        copy.streams.gpu = gpu_at(copy.first_on_gpu());
    }
    waywiser_transfer* transfer = nullptr;
    if (copy.bytes > 0) {
        const waywiser_status made = use(context, [&](waywiser_context* c) {
            bool captured = false;  // then the library rejects it
            const waywiser_status status = order_before(c, copy.streams, captured);
            return status == WAYWISER_OK ? start(c, copy, &transfer) : status;
        });
        keep_if_in_use(made, copy.kept.to);
        keep_if_in_use(made, copy.kept.from);
        check_use(made);
    }
    auto pending =
        std::make_shared<PendingTransfer>(StartedTransfer{.transfer = transfer,
                                                          .bytes = copy.bytes + copy.moved,
                                                          .held = std::move(copy.kept).all(),
                                                          .streams = copy.streams});
    keep(pending);
    return pending;
}

}  // namespace

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

void raise_other_captured() {
    raise(Failure::unsupported,
          {.what = "the stream of the destination is being captured, that of the source is not",
           .remedy = "copy before the capture, or record the copy with stream="});
}

void copy_on_host(ContextState& context, void* to, const void* from, std::size_t bytes) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const auto copy = [&] { context.copy_on_host(bytes, [&] { std::memcpy(to, from, bytes); }); };
    if (bytes <= kWithGil && context.is_open()) return copy();
    check_use(use_on_host(context, copy));
}

std::string explain_copy(ContextState& context, const Submission& copy) {
    if (copy.bytes == 0) return "nothing to copy";
    if (copy.listed() && is_inline(copy)) {
        if (!context.is_open()) raise_closed();
        return "list of " + std::to_string(copy.pieces()) + " pieces, " +
               std::to_string(copy.bytes) +
               " bytes in all; copied by the calling thread: too small for several threads";
    }
    std::string text(1024, '\0');
    for (std::size_t needed = 0;; text.resize(needed)) {
        check_use(
            use(context, [&](waywiser_context* c) { return explain_in(c, copy, text, needed); }));
        if (needed <= text.size()) break;
    }
    text.resize(text.find('\0'));
    return text;
}

const char* method_of_copy(ContextState& context, const Submission& copy) {
    if (copy.bytes == 0) return "none";
    if (copy.listed()) return "list";
    waywiser_method method = WAYWISER_METHOD_NONE;
    check_use(use(context, [&](waywiser_context* c) {
        return waywiser_copy_method(c, copy.to, copy.from, copy.bytes, &method);
    }));
    return method == WAYWISER_METHOD_PLAIN ? "plain" : "chunked";
}

void run(ContextState& context, Submission& copy) {
    if (copy.bytes == 0) return;
    if (is_inline(copy)) return run_on_host(context, copy);
    if (!copy.to_host && !copy.from_host) return run_between_gpus(context, copy);
    run_with_host(context, copy);
}

std::shared_ptr<PendingTransfer> start(ContextState& context, Submission& copy) {
    return start_by(context, copy, asynchronous);
}

std::shared_ptr<PendingTransfer> start_snapshot(ContextState& context, Submission& copy) {
    return start_by(context, copy, beside);
}

}  // namespace waywiser::python
