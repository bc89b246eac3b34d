// The C interface: transfers. All calls that move bytes come to perform().
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transfer/caller_stream.hpp"
#include "transfer/capi_guard.hpp"
#include "transfer/capi_lists.hpp"
#include "transfer/capi_trace.hpp"
#include "transfer/engine.hpp"
#include "transfer/file_end.hpp"
#include "transfer/submit.hpp"
#include "transfer/wait_for_host.hpp"

using namespace waywiser;  // the whole file uses it
using namespace waywiser::capi;
using transfer::CallerStream;
using transfer::Operation;
using transfer::SubmitMode;

struct waywiser_plan {
    transfer::PreparedOperations operations;
};

namespace {

// What a call asks for, and where its results go.
struct Request {
    void* stream = nullptr;
    SubmitMode mode = SubmitMode::in_stream;
    double timeout = -1;
    int* ended = nullptr;  // may be null, as the next one
    std::size_t* moved = nullptr;
    waywiser_transfer** handle = nullptr;  // may be null if the call is in the stream
    std::uint32_t unknown_flags = 0;       // of waywiser_submit(): a mistake
};

Request request_in(void* stream, waywiser_transfer** handle) {
    return {.stream = stream,
            .mode = handle != nullptr ? SubmitMode::at_once : SubmitMode::in_stream,
            .handle = handle};
}

Request request_that_waits(void* stream, double timeout, int* ended, std::size_t* moved,
                           waywiser_transfer** handle) {
    return {.stream = stream,
            .mode = SubmitMode::host_free,
            .timeout = timeout,
            .ended = ended,
            .moved = moved,
            .handle = handle};
}

Request request_of_flags(void* stream, std::uint32_t flags, waywiser_transfer** handle) {
    switch (flags) {
        case 0: return {.stream = stream, .mode = SubmitMode::at_once, .handle = handle};
        case WAYWISER_IN_STREAM: return {.stream = stream, .handle = handle};
        case WAYWISER_SNAPSHOT:
            return {.stream = stream, .mode = SubmitMode::snapshot, .handle = handle};
        default: break;
    }
    return {.stream = stream, .handle = handle, .unknown_flags = flags};
}

std::uint32_t flags_of(SubmitMode mode) {
    if (mode == SubmitMode::snapshot) return WAYWISER_SNAPSHOT;
    return mode == SubmitMode::in_stream ? WAYWISER_IN_STREAM : 0;
}

// Clears the results of a call, and checks what all calls have.
void prepare(const Request& call) {
    if (call.handle != nullptr) *call.handle = nullptr;
    if (call.moved != nullptr) *call.moved = 0;
    if (call.ended != nullptr) *call.ended = 0;
    if (call.unknown_flags != 0) {
        throw transfer::InvalidCopy("the flags are " + std::to_string(call.unknown_flags) +
                                    ": pass 0, WAYWISER_IN_STREAM or WAYWISER_SNAPSHOT");
    }
    if (call.mode != SubmitMode::in_stream) need_argument(call.handle, "transfer", kTransferPlace);
    need_number(call.timeout);
}

// Reports a transfer to the tracer. `run` submits it.
template <class Run>
transfer::Submitted run_traced(const waywiser_tracer& tracer,
                               const std::shared_ptr<transfer::Engine>& engine,
                               std::span<const Operation> operations, const Request& call,
                               const std::size_t& moved, const Run& run) {
    TracedTransfer traced(tracer, operations, call.stream, flags_of(call.mode),
                          call.mode == SubmitMode::host_free);
    transfer::Submitted made;
    try {
        made = run();
    } catch (...) {
        traced.fail(failure_report().status, moved);
        throw;
    }
    if (made.left || made.ended || call.mode == SubmitMode::at_once) {
        traced.returned(made.left ? &*made.left : nullptr, *engine);
        return made;
    }
    std::optional<transfer::Completion> marked;
    try {
        marked =
            transfer::mark(*engine, CallerStream::of(call.stream), transfer::bytes_of(operations));
    } catch (const std::exception&) {
        marked.reset();  // it ends for the tracer when the call returns
    }
    traced.returned(marked ? &*marked : nullptr, *engine);
    return made;
}

// `submit` gets the stream, the mode, the deadline and the place of the moved bytes.
template <class Submit>
void perform(const std::shared_ptr<transfer::Engine>& engine, std::span<const Operation> operations,
             const Request& call, const Submit& submit) {
    std::size_t ignored = 0;
    std::size_t& moved = call.moved != nullptr ? *call.moved : ignored;
    const auto run = [&] {
        return submit(CallerStream::of(call.stream), call.mode, transfer::Deadline(call.timeout),
                      moved);
    };
    const waywiser_tracer* const tracer = active_tracer();
    transfer::Submitted made =
        tracer == nullptr ? run() : run_traced(*tracer, engine, operations, call, moved, run);
    if (call.ended != nullptr) *call.ended = made.ended ? 1 : 0;
    if (made.left && call.handle != nullptr) {
        *call.handle = new waywiser_transfer{engine, std::move(*made.left)};
    }
}

// `make` checks and describes the operation, or several.
template <class Make>
waywiser_status submit_call(waywiser_context* context, const Request& call, const Make& make) {
    return guarded([&] {
        prepare(call);
        need_context(context);
        auto operations = make();
        std::span<Operation> all;
        if constexpr (std::is_same_v<decltype(operations), Operation>) {
            all = {&operations, 1};
        } else {
            all = operations;
        }
        perform(context->engine, all, call,
                [&](const CallerStream& stream, SubmitMode mode, const transfer::Deadline& deadline,
                    std::size_t& moved) {
                    return transfer::submit(context->engine, all, stream, mode, deadline, moved);
                });
    });
}

waywiser_status submit_plan(waywiser_plan* plan, const Request& call) {
    return guarded([&] {
        prepare(call);
        need_argument(plan, "plan", "what waywiser_plan_create gave");
        const transfer::PreparedOperations& prepared = plan->operations;
        perform(prepared.engine(), prepared.operations(), call,
                [&](const CallerStream& stream, SubmitMode mode, const transfer::Deadline& deadline,
                    std::size_t& moved) { return prepared.submit(stream, mode, deadline, moved); });
    });
}

transfer::WriteEnd write_end(std::uint32_t flags) {
    constexpr std::uint32_t kAll = WAYWISER_WRITE_TRUNCATE | WAYWISER_WRITE_SYNC;
    need((flags & ~kAll) == 0, "the argument flags has bits that this library does not know");
    return {.truncate = (flags & WAYWISER_WRITE_TRUNCATE) != 0,
            .sync = (flags & WAYWISER_WRITE_SYNC) != 0};
}

Operation range_copy(void* to, const void* from, std::size_t bytes) {
    return transfer::RangeCopy{.to = to, .from = from, .bytes = bytes};
}

Operation file_read(int file, std::uint64_t offset, void* to, std::size_t bytes) {
    return transfer::FileRead{.from = {.file = file, .offset = offset}, .to = to, .bytes = bytes};
}

Operation file_write(int file, std::uint64_t offset, const void* from, std::size_t bytes,
                     std::uint32_t flags) {
    return transfer::FileWrite{.to = {.file = file, .offset = offset},
                               .from = from,
                               .bytes = bytes,
                               .end = write_end(flags)};
}

// The operations of a caller. Its ranges become one list.
std::vector<Operation> operations_of(const waywiser_operation* given, std::size_t count) {
    std::vector<Operation> made;
    if (count == 0) return made;
    need_argument(given, "operations", "an array of count operations");
    const std::size_t size = given->size;
    check_size(*given, "waywiser_operation");
    need_entries(given, count, size, "operations", "count");
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < count; ++i) {
        const auto* const at = reinterpret_cast<const std::byte*>(given) + i * size;
        const auto& entry = *reinterpret_cast<const waywiser_operation*>(at);
        need(entry.size == size,
             "the operations differ in their size: set each to "
             "sizeof(waywiser_operation)");
        const waywiser_operation one = take(entry, "waywiser_operation");
        if (!is_known(one.kind, WAYWISER_WRITE)) {
            throw NotSupported("operation " + std::to_string(i) +
                               " is of a kind that this version of the library does not know");
        }
        switch (one.kind) {
            case WAYWISER_COPY:
                to.push_back(one.to);
                from.push_back(one.from);
                sizes.push_back(one.bytes);
                continue;
            case WAYWISER_BLOCKS:
                made.emplace_back(
                    checked_blocks({one.to, one.to_stride, one.to_blocks, one.to_index},
                                   {one.from, one.from_stride, one.from_blocks, one.from_index},
                                   one.bytes, one.count));
                continue;
            case WAYWISER_READ:
                made.push_back(file_read(one.file, one.offset, one.to, one.bytes));
                continue;
            case WAYWISER_WRITE:
                made.push_back(
                    file_write(one.file, one.offset, one.from, one.bytes, one.write_flags));
                continue;
        }
    }
    if (!sizes.empty()) {
        // First: the calling thread may have to copy these, and what is in the stream need not
        // wait.
        made.insert(made.begin(), checked_list(to.data(), from.data(), sizes.data(), sizes.size()));
    }
    transfer::check_apart(made);
    return made;
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

constexpr transfer::Polling kAnyTransfer{.spin = std::chrono::microseconds(200),
                                         .pause = std::chrono::microseconds(1),
                                         .sleep = std::chrono::microseconds(50)};

}  // namespace

extern "C" {

waywiser_status waywiser_submit(waywiser_context* context, const waywiser_operation* operations,
                                size_t count, void* stream, uint32_t flags,
                                waywiser_transfer** handle) {
    return submit_call(context, request_of_flags(stream, flags, handle),
                       [&] { return operations_of(operations, count); });
}

waywiser_status waywiser_submit_and_wait(waywiser_context* context,
                                         const waywiser_operation* operations, size_t count,
                                         void* stream, double timeout, int* ended, size_t* moved,
                                         waywiser_transfer** handle) {
    return submit_call(context, request_that_waits(stream, timeout, ended, moved, handle),
                       [&] { return operations_of(operations, count); });
}

waywiser_status waywiser_plan_create(waywiser_context* context,
                                     const waywiser_operation* operations, size_t count,
                                     waywiser_plan** plan) {
    return guarded([&] {
        need_argument(plan, "plan", "the address of a waywiser_plan*");
        *plan = nullptr;
        need_context(context);
        *plan = new waywiser_plan{
            transfer::PreparedOperations(context->engine, operations_of(operations, count))};
    });
}

waywiser_status waywiser_plan_submit(waywiser_plan* plan, void* stream, uint32_t flags,
                                     waywiser_transfer** handle) {
    return submit_plan(plan, request_of_flags(stream, flags, handle));
}

waywiser_status waywiser_plan_submit_and_wait(waywiser_plan* plan, void* stream, double timeout,
                                              int* ended, size_t* moved,
                                              waywiser_transfer** handle) {
    return submit_plan(plan, request_that_waits(stream, timeout, ended, moved, handle));
}

void waywiser_plan_release(waywiser_plan* plan) {
    if (plan == nullptr || plan->operations.engine()->forked()) return;
    const gpu::CallerState keep;
    delete plan;
}

waywiser_status waywiser_copy(waywiser_context* context, void* to, const void* from, size_t bytes,
                              void* stream) {
    return submit_call(context, request_in(stream, nullptr),
                       [&] { return range_copy(to, from, bytes); });
}

waywiser_status waywiser_copy_and_wait(waywiser_context* context, void* to, const void* from,
                                       size_t bytes, void* stream, double timeout, int* ended,
                                       waywiser_transfer** handle) {
    return submit_call(context, request_that_waits(stream, timeout, ended, nullptr, handle),
                       [&] { return range_copy(to, from, bytes); });
}

waywiser_status waywiser_copy_async(waywiser_context* context, void* to, const void* from,
                                    size_t bytes, void* stream, waywiser_transfer** handle) {
    return submit_call(context, {.stream = stream, .mode = SubmitMode::at_once, .handle = handle},
                       [&] { return range_copy(to, from, bytes); });
}

waywiser_status waywiser_copy_batch(waywiser_context* context, void* const* to,
                                    const void* const* from, const size_t* sizes, size_t count,
                                    void* stream, waywiser_transfer** handle) {
    return submit_call(context, request_in(stream, handle),
                       [&]() -> Operation { return checked_list(to, from, sizes, count); });
}

waywiser_status waywiser_copy_batch_and_wait(waywiser_context* context, void* const* to,
                                             const void* const* from, const size_t* sizes,
                                             size_t count, void* stream, double timeout, int* ended,
                                             waywiser_transfer** handle) {
    return submit_call(context, request_that_waits(stream, timeout, ended, nullptr, handle),
                       [&]() -> Operation { return checked_list(to, from, sizes, count); });
}

waywiser_status waywiser_copy_blocks(waywiser_context* context, void* to, size_t to_stride,
                                     size_t to_blocks, const void* from, size_t from_stride,
                                     size_t from_blocks, size_t block, const int64_t* to_index,
                                     const int64_t* from_index, size_t count, void* stream,
                                     waywiser_transfer** handle) {
    return submit_call(context, request_in(stream, handle), [&]() -> Operation {
        return checked_blocks({to, to_stride, to_blocks, to_index},
                              {from, from_stride, from_blocks, from_index}, block, count);
    });
}

waywiser_status waywiser_copy_blocks_and_wait(waywiser_context* context, void* to, size_t to_stride,
                                              size_t to_blocks, const void* from,
                                              size_t from_stride, size_t from_blocks, size_t block,
                                              const int64_t* to_index, const int64_t* from_index,
                                              size_t count, void* stream, double timeout,
                                              int* ended, waywiser_transfer** handle) {
    return submit_call(
        context, request_that_waits(stream, timeout, ended, nullptr, handle), [&]() -> Operation {
            return checked_blocks({to, to_stride, to_blocks, to_index},
                                  {from, from_stride, from_blocks, from_index}, block, count);
        });
}

waywiser_status waywiser_snapshot(waywiser_context* context, void* const* to,
                                  const void* const* from, const size_t* sizes, size_t count,
                                  void* stream, waywiser_transfer** handle) {
    return submit_call(context, {.stream = stream, .mode = SubmitMode::snapshot, .handle = handle},
                       [&]() -> Operation { return checked_list(to, from, sizes, count); });
}

waywiser_status waywiser_read(waywiser_context* context, int file, uint64_t offset, void* to,
                              size_t bytes, void* stream, size_t* moved,
                              waywiser_transfer** handle) {
    Request call = request_in(stream, handle);
    if (handle == nullptr) call.moved = moved;
    return submit_call(context, call, [&] { return file_read(file, offset, to, bytes); });
}

waywiser_status waywiser_read_and_wait(waywiser_context* context, int file, uint64_t offset,
                                       void* to, size_t bytes, void* stream, double timeout,
                                       int* ended, size_t* moved, waywiser_transfer** handle) {
    return submit_call(context, request_that_waits(stream, timeout, ended, moved, handle),
                       [&] { return file_read(file, offset, to, bytes); });
}

waywiser_status waywiser_write(waywiser_context* context, int file, uint64_t offset,
                               const void* from, size_t bytes, uint32_t flags, void* stream,
                               size_t* moved, waywiser_transfer** handle) {
    Request call = request_in(stream, handle);
    if (handle == nullptr) call.moved = moved;
    return submit_call(context, call, [&] { return file_write(file, offset, from, bytes, flags); });
}

waywiser_status waywiser_write_and_wait(waywiser_context* context, int file, uint64_t offset,
                                        const void* from, size_t bytes, uint32_t flags,
                                        void* stream, double timeout, int* ended, size_t* moved,
                                        waywiser_transfer** handle) {
    return submit_call(context, request_that_waits(stream, timeout, ended, moved, handle),
                       [&] { return file_write(file, offset, from, bytes, flags); });
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

waywiser_status waywiser_transfer_query(waywiser_transfer* handle, waywiser_transfer_info* info) {
    return guarded([&] {
        need_argument(info, "info", "the address of a waywiser_transfer_info");
        check_size(*info, "waywiser_transfer_info");
        if (handle == nullptr)
            return give(info, info_of(transfer::Completion(0)), "waywiser_transfer_info");
        handle->engine->check_process();
        const gpu::CallerState keep;
        give(info, info_of(handle->started), "waywiser_transfer_info");
    });
}

waywiser_status waywiser_transfer_cancel(waywiser_transfer* handle) {
    return guarded([&] {
        if (handle == nullptr) return;
        handle->engine->check_process();
        const gpu::CallerState keep;
        handle->started.cancel();
    });
}

waywiser_status waywiser_wait_any(waywiser_transfer* const* transfers, size_t count, double timeout,
                                  size_t* index) {
    bool found = true;
    const waywiser_status status = guarded([&] {
        need_argument(index, "index", "the address of a size_t");
        *index = 0;
        need(count > 0, "the argument count is 0: pass at least one transfer");
        need_array(transfers, count, "transfers", "count", "an array of count transfers");
        need_number(timeout);
        const std::span all(transfers, count);
        for (const waywiser_transfer* one : all) {
            if (one != nullptr) one->engine->check_process();
        }
        const gpu::CallerState keep;
        const auto some = [&] {
            for (std::size_t i = 0; i < count; ++i) {
                if (all[i] != nullptr && !all[i]->started.done()) continue;
                *index = i;
                return true;
            }
            return false;
        };
        found = transfer::poll(some, transfer::Deadline(timeout), kAnyTransfer);
    });
    if (status != WAYWISER_OK || found) return status;
    return failed(WAYWISER_TIMEOUT, "none of " + std::to_string(count) +
                                        " transfers has ended within " + std::to_string(timeout) +
                                        " s; they go on");
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
        if (handle == nullptr) return transfer::notify_ended(descriptor);
        const gpu::CallerState keep;
        handle->started.notify(descriptor, *handle->engine);
    });
}

waywiser_status waywiser_transfer_on_end(waywiser_transfer* handle,
                                         void (*callback)(void* data,
                                                          const waywiser_transfer_info* info),
                                         void* data) {
    return guarded([&] {
        need_argument(callback, "callback", "a function");
        if (handle == nullptr) {
            const waywiser_transfer_info info = info_of(transfer::Completion(0));
            return callback(data, &info);
        }
        handle->engine->check_process();
        const gpu::CallerState keep;
        handle->started.on_end(
            [callback, data](const transfer::Completion& one) {
                const waywiser_transfer_info info = info_of(one);
                callback(data, &info);
            },
            *handle->engine);
    });
}

void waywiser_transfer_release(waywiser_transfer* handle) {
    if (handle == nullptr || handle->engine->forked()) return;
    const gpu::CallerState keep;
    delete handle;
}

waywiser_status waywiser_set_tracer(const waywiser_tracer* tracer) {
    return guarded([&] { set_tracer(tracer); });
}

}  // extern "C"
