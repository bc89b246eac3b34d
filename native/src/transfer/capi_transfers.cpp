// The C interface: transfers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "transfer/caller_stream.hpp"
#include "transfer/capi_guard.hpp"
#include "transfer/capi_lists.hpp"
#include "transfer/copy.hpp"
#include "transfer/file_copy.hpp"
#include "transfer/file_end.hpp"
#include "transfer/list_copy.hpp"
#include "transfer/snapshot.hpp"
#include "transfer/wait_for_host.hpp"

using namespace waywiser;  // the whole file uses it
using namespace waywiser::capi;
using transfer::CallerStream;

namespace {

// See waywiser_last_ended().
bool& last_ended() {
    thread_local bool ended = false;
    return ended;
}

waywiser_status too_late(const char* what, double timeout) {
    return failed(WAYWISER_TIMEOUT, "the transfer has not " + std::string(what) + " within " +
                                        std::to_string(timeout) + " s; it goes on");
}

// Orders a caller's stream after a transfer, or after its reads, by a call of `Completion`.
waywiser_status order_stream(waywiser_transfer* handle, void* stream, double timeout,
                             bool (transfer::Completion::*order)(const transfer::Engine&,
                                                                 const transfer::CallerStream&,
                                                                 const transfer::Deadline&) const) {
    if (handle == nullptr) return WAYWISER_OK;
    bool ordered = true;
    const waywiser_status status = guarded([&] {
        handle->engine->check_process();
        const gpu::CallerState keep;
        need_number(timeout);
        ordered = (handle->started.*order)(*handle->engine, CallerStream::of(stream),
                                           transfer::Deadline(timeout));
    });
    return status == WAYWISER_OK && !ordered ? too_late("been submitted", timeout) : status;
}

// Starts a transfer for the caller; after a failure, *handle is null.
template <class Start>
waywiser_status begin(waywiser_context* context, waywiser_transfer** handle, const Start& start) {
    return guarded([&] {
        need_argument(handle, "transfer", kTransferPlace);
        *handle = nullptr;
        need_context(context);
        *handle = new waywiser_transfer{context->engine, start()};
    });
}

// Makes a transfer and waits; *handle is what is left of it after the timeout.
template <class Move>
waywiser_status move_and_wait(waywiser_context* context, double timeout, waywiser_transfer** handle,
                              const Move& move) {
    return guarded([&] {
        need_argument(handle, "transfer", kTransferPlace);
        *handle = nullptr;
        need_context(context);
        need_number(timeout);
        last_ended() = false;
        transfer::WaitResult waited = move();
        last_ended() = waited.ended;
        if (!waited.left) return;
        *handle = new waywiser_transfer{context->engine, std::move(*waited.left)};
    });
}

transfer::WriteEnd write_end(std::uint32_t flags) {
    constexpr std::uint32_t kAll = WAYWISER_WRITE_TRUNCATE | WAYWISER_WRITE_SYNC;
    need((flags & ~kAll) == 0, "the argument flags has bits that this library does not know");
    return {.truncate = (flags & WAYWISER_WRITE_TRUNCATE) != 0,
            .sync = (flags & WAYWISER_WRITE_SYNC) != 0};
}

// Copies a list in the way that `handle` asks for. `list` checks and describes it.
template <class List>
waywiser_status copy_list(waywiser_context* context, void* stream, waywiser_transfer** handle,
                          const List& list) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::copy_list_async(context->engine, list(), CallerStream::of(stream));
        });
    }
    return guarded([&] {
        need_context(context);
        transfer::copy_list(*context->engine, list(), CallerStream::of(stream));
    });
}

}  // namespace

extern "C" {

waywiser_status waywiser_copy(waywiser_context* context, void* to, const void* from, size_t bytes,
                              void* stream) {
    return guarded([&] {
        need_context(context);
        transfer::copy(*context->engine, to, from, bytes, CallerStream::of(stream));
    });
}

waywiser_status waywiser_copy_and_wait(waywiser_context* context, void* to, const void* from,
                                       size_t bytes, void* stream, double timeout,
                                       waywiser_transfer** handle) {
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::copy_and_wait(context->engine, to, from, bytes, CallerStream::of(stream),
                                       transfer::Deadline(timeout));
    });
}

int waywiser_last_ended(void) { return last_ended() ? 1 : 0; }

waywiser_status waywiser_copy_async(waywiser_context* context, void* to, const void* from,
                                    size_t bytes, void* stream, waywiser_transfer** handle) {
    return begin(context, handle, [&] {
        return transfer::copy_async(context->engine, to, from, bytes, CallerStream::of(stream));
    });
}

waywiser_status waywiser_copy_batch(waywiser_context* context, void* const* to,
                                    const void* const* from, const size_t* sizes, size_t count,
                                    void* stream, waywiser_transfer** handle) {
    return copy_list(context, stream, handle, [&] { return checked_list(to, from, sizes, count); });
}

waywiser_status waywiser_copy_batch_and_wait(waywiser_context* context, void* const* to,
                                             const void* const* from, const size_t* sizes,
                                             size_t count, void* stream, double timeout,
                                             waywiser_transfer** handle) {
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::copy_list_and_wait(context->engine, checked_list(to, from, sizes, count),
                                            CallerStream::of(stream), transfer::Deadline(timeout));
    });
}

waywiser_status waywiser_copy_blocks(waywiser_context* context, void* to, size_t to_stride,
                                     size_t to_blocks, const void* from, size_t from_stride,
                                     size_t from_blocks, size_t block, const int64_t* to_index,
                                     const int64_t* from_index, size_t count, void* stream,
                                     waywiser_transfer** handle) {
    return copy_list(context, stream, handle, [&] {
        return checked_blocks({to, to_stride, to_blocks, to_index},
                              {from, from_stride, from_blocks, from_index}, block, count);
    });
}

waywiser_status waywiser_copy_blocks_and_wait(waywiser_context* context, void* to, size_t to_stride,
                                              size_t to_blocks, const void* from,
                                              size_t from_stride, size_t from_blocks, size_t block,
                                              const int64_t* to_index, const int64_t* from_index,
                                              size_t count, void* stream, double timeout,
                                              waywiser_transfer** handle) {
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::copy_list_and_wait(
            context->engine,
            checked_blocks({to, to_stride, to_blocks, to_index},
                           {from, from_stride, from_blocks, from_index}, block, count),
            CallerStream::of(stream), transfer::Deadline(timeout));
    });
}

waywiser_status waywiser_snapshot(waywiser_context* context, void* const* to,
                                  const void* const* from, const size_t* sizes, size_t count,
                                  void* stream, waywiser_transfer** handle) {
    return begin(context, handle, [&] {
        return transfer::snapshot(context->engine, checked_list(to, from, sizes, count),
                                  CallerStream::of(stream));
    });
}

waywiser_status waywiser_read(waywiser_context* context, int file, uint64_t offset, void* to,
                              size_t bytes, void* stream, size_t* moved,
                              waywiser_transfer** handle) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::read_async(context->engine, {file, offset}, to, bytes,
                                        CallerStream::of(stream));
        });
    }
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return guarded([&] {
        need_context(context);
        transfer::read(*context->engine, {file, offset}, to, bytes, CallerStream::of(stream),
                       moved != nullptr ? *moved : ignored);
    });
}

waywiser_status waywiser_read_and_wait(waywiser_context* context, int file, uint64_t offset,
                                       void* to, size_t bytes, void* stream, double timeout,
                                       size_t* moved, waywiser_transfer** handle) {
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::read_and_wait(context->engine, {file, offset}, to, bytes,
                                       CallerStream::of(stream), transfer::Deadline(timeout),
                                       moved != nullptr ? *moved : ignored);
    });
}

waywiser_status waywiser_write_with(waywiser_context* context, int file, uint64_t offset,
                                    const void* from, size_t bytes, uint32_t flags, void* stream,
                                    size_t* moved, waywiser_transfer** handle) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::write_async(context->engine, {file, offset}, from, bytes,
                                         CallerStream::of(stream), write_end(flags));
        });
    }
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return guarded([&] {
        need_context(context);
        transfer::write(*context->engine, {file, offset}, from, bytes, CallerStream::of(stream),
                        moved != nullptr ? *moved : ignored, write_end(flags));
    });
}

waywiser_status waywiser_write_with_and_wait(waywiser_context* context, int file, uint64_t offset,
                                             const void* from, size_t bytes, uint32_t flags,
                                             void* stream, double timeout, size_t* moved,
                                             waywiser_transfer** handle) {
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::write_and_wait(context->engine, {file, offset}, from, bytes,
                                        CallerStream::of(stream), transfer::Deadline(timeout),
                                        moved != nullptr ? *moved : ignored, write_end(flags));
    });
}

waywiser_status waywiser_write(waywiser_context* context, int file, uint64_t offset,
                               const void* from, size_t bytes, void* stream, size_t* moved,
                               waywiser_transfer** handle) {
    return waywiser_write_with(context, file, offset, from, bytes, 0, stream, moved, handle);
}

waywiser_status waywiser_write_and_wait(waywiser_context* context, int file, uint64_t offset,
                                        const void* from, size_t bytes, void* stream,
                                        double timeout, size_t* moved, waywiser_transfer** handle) {
    return waywiser_write_with_and_wait(context, file, offset, from, bytes, 0, stream, timeout,
                                        moved, handle);
}

waywiser_status waywiser_mark(waywiser_context* context, void* stream, waywiser_transfer** handle) {
    return guarded([&] {
        need_argument(handle, "transfer", kTransferPlace);
        *handle = nullptr;
        need_context(context);
        auto marked = transfer::mark(*context->engine, CallerStream::of(stream));
        if (marked) *handle = new waywiser_transfer{context->engine, std::move(*marked)};
    });
}

int waywiser_transfer_done(waywiser_transfer* handle) {
    if (handle == nullptr) return 1;
    try {
        handle->engine->check_process();
        const gpu::CallerState keep;
        return handle->started.done() ? 1 : 0;
    } catch (...) {
        return 1;  // it has failed; its result has the error
    }
}

waywiser_status waywiser_transfer_result(waywiser_transfer* handle, double timeout, size_t* moved) {
    if (moved != nullptr) *moved = 0;
    if (handle == nullptr) return WAYWISER_OK;
    bool ended = true;
    const waywiser_status status = guarded([&] {
        handle->engine->check_process();
        const gpu::CallerState keep;
        need_number(timeout);
        try {
            ended = handle->started.wait(transfer::Deadline(timeout));
        } catch (...) {
            if (moved != nullptr) *moved = handle->started.moved();
            throw;
        }
        if (moved == nullptr) return;
        *moved = ended ? handle->started.moved_in_all() : handle->started.moved();
    });
    return status == WAYWISER_OK && !ended ? too_late("ended", timeout) : status;
}

waywiser_status waywiser_transfer_wait(waywiser_transfer* handle, void* stream, double timeout) {
    return order_stream(handle, stream, timeout, &transfer::Completion::order);
}

waywiser_status waywiser_transfer_wait_source_read(waywiser_transfer* handle, void* stream,
                                                   double timeout) {
    return order_stream(handle, stream, timeout, &transfer::Completion::order_reads);
}

int waywiser_transfer_source_read_pending(waywiser_transfer* handle) {
    if (handle == nullptr || handle->engine->forked()) return 0;
    return handle->started.reads_pending() ? 1 : 0;
}

waywiser_status waywiser_transfer_notify(waywiser_transfer* handle, int descriptor) {
    return guarded([&] {
        if (handle != nullptr) handle->engine->check_process();
        transfer::check_writable(descriptor, "notifying");
        if (handle == nullptr) return transfer::write_notification(descriptor);
        const gpu::CallerState keep;
        handle->started.notify(descriptor, *handle->engine);
    });
}

void waywiser_transfer_release(waywiser_transfer* handle) {
    if (handle == nullptr || handle->engine->forked()) return;
    const gpu::CallerState keep;
    delete handle;
}

}  // extern "C"
