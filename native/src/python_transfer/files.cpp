// Reads of files into memory of any kind, and writes.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "copies.hpp"
#include "file_call.hpp"
#include "file_operand.hpp"
#include "parted_transfer.hpp"
#include "plain_buffer.hpp"
#include "submission.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

FileCall prepare(const Context& context, Direction direction, nb::handle file, nb::handle array,
                 nb::handle offset, nb::handle bytes, nb::handle stream) {
    prune();
    context->check_process();
    FileCall call = prepare_memory(context, direction, array, offset, bytes, stream_of(stream));
    add_file(file, array, call);
    return call;
}

// Reads few bytes into host memory with the calling thread. Returns nullopt if the library has to
// read them, or to find out what fails.
std::optional<std::size_t> read_inline(ContextState& context, const QuickFile& file, std::byte* to,
                                       std::size_t bytes, std::uint64_t offset) {
    if (bytes == 0 || bytes >= kInline) return std::nullopt;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    std::optional<std::size_t> moved;
    check_use(use_on_host(context, [&] { moved = file.read(to, bytes, offset); }));
    return moved;
}

std::optional<std::size_t> read_inline(ContextState& context, const QuickFile& file,
                                       const FileCall& call) {
    if (!call.host || call.names_stream) return std::nullopt;
    return read_inline(context, file, call.data, call.bytes, call.offset);
}

// An integer from 0 on; nullopt if it is anything else.
std::optional<std::uint64_t> usual_number(nb::handle number) {
    if (!PyLong_CheckExact(number.ptr())) return std::nullopt;
    const long long value = PyLong_AsLongLong(number.ptr());
    if (value >= 0) return static_cast<std::uint64_t>(value);
    PyErr_Clear();
    return std::nullopt;
}

// Reads few bytes into a usual host array, without what other reads need. Returns nullopt, and has
// changed no more than the array, if it is another read or something may be wrong with it.
std::optional<std::size_t> read_at_once(ContextState& context, nb::handle file, nb::handle to,
                                        nb::handle offset, nb::handle bytes, nb::handle stream) {
    if (!stream.is_none()) return std::nullopt;
    const PlainBuffer memory(to, type_by(to));
    if (!memory || memory.is_read_only()) return std::nullopt;
    const auto at = usual_number(offset);
    const auto count = bytes.is_none() ? memory.bytes() : usual_number(bytes);
    constexpr std::uint64_t kEnd = std::numeric_limits<std::int64_t>::max();
    if (!at || !count || *count > memory.bytes() || *at > kEnd - *count) return std::nullopt;
    return read_inline(context, QuickFile::of(file), memory.data(), *count, *at);
}

std::size_t run(ContextState& context, FileCall call) {
    const bool reads = call.direction == Direction::read;
    return move_in_parts(
        context,
        {.bytes = call.bytes,
         .to_gpu = !call.host && reads,
         .streams = call.streams,
         .kept = std::move(call.kept),
         .file = &call.file},
        [&](waywiser_context* c, std::size_t at, std::size_t bytes, PartResult& result) {
            const int file = call.file.descriptor();
            void* const stream = call.streams.carrier;
            return reads ? waywiser_read_and_wait(c, file, call.offset + at, call.data + at, bytes,
                                                  stream, kWaitSlice, &result.ended, &result.moved,
                                                  &result.left)
                         : waywiser_write_and_wait(
                               c, file, call.offset + at, call.data + at, bytes,
                               at + bytes < call.bytes ? call.flags & ~WAYWISER_WRITE_TRUNCATE
                                                       : call.flags,
                               stream, kWaitSlice, &result.ended, &result.moved, &result.left);
        });
}

// A write of no bytes may still cut the file.
void end_empty(ContextState& context, const FileCall& call) {
    if (call.bytes > 0 || call.flags == 0) return;
    check_part(use(context,
                   [&](waywiser_context* c) {
                       return waywiser_write(c, call.file.descriptor(), call.offset, nullptr, 0,
                                             call.flags, WAYWISER_NO_STREAM, nullptr, nullptr);
                   }),
               0, &call.file);
}

FileCall prepare_write(const Context& context, nb::handle file, nb::handle from, nb::handle offset,
                       nb::handle bytes, nb::handle truncate, nb::handle sync, nb::handle stream) {
    const std::uint32_t flags = flags_of(truncate, sync);
    FileCall call = prepare(context, Direction::write, file, from, offset, bytes, stream);
    call.flags = flags;
    end_empty(*context, call);
    return call;
}

waywiser_status submit(waywiser_context* context, const FileCall& call,
                       waywiser_transfer** transfer) {
    const int file = call.file.descriptor();
    void* const stream = call.streams.carrier;
    return call.direction == Direction::read
               ? waywiser_read(context, file, call.offset, call.data, call.bytes, stream, nullptr,
                               transfer)
               : waywiser_write(context, file, call.offset, call.data, call.bytes, call.flags,
                                stream, nullptr, transfer);
}

Handle start(ContextState& context, FileCall call) {
    if (call.streams.gpu == kSomeGpu && call.bytes > 0) call.streams.gpu = gpu_at(call.data);
    waywiser_transfer* transfer = nullptr;
    if (call.bytes > 0) {
        const waywiser_status status =
            use(context, [&](waywiser_context* c) { return submit(c, call, &transfer); });
        keep_if_in_use(status, call.kept.to);
        keep_if_in_use(status, call.kept.from);
        check_use(status);
    }
    const std::string file_call = call.file.call();
    auto pending =
        std::make_shared<PendingTransfer>(StartedTransfer{.transfer = transfer,
                                                          .held = std::move(call.kept).all(),
                                                          .streams = call.streams,
                                                          .files = files_of(std::move(call.file)),
                                                          .file_call = file_call});
    keep(pending);
    return pending;
}

}  // namespace

std::size_t read_file(const Context& context, nb::handle file, nb::handle to, nb::handle offset,
                      nb::handle bytes, nb::handle stream) {
    prune();
    context->check_process();
    if (const auto moved = read_at_once(*context, file, to, offset, bytes, stream)) return *moved;
    FileCall call = prepare_memory(context, Direction::read, to, offset, bytes, stream_of(stream));
    if (const auto moved = read_inline(*context, QuickFile::of(file), call)) {
        if (call.is_torch) note_torch_write(to);
        return *moved;
    }
    add_file(file, to, call);
    if (const auto moved = read_inline(*context, QuickFile(call.file.descriptor()), call)) {
        return *moved;
    }
    return run(*context, std::move(call));
}

Handle read_file_async(const Context& context, nb::handle file, nb::handle to, nb::handle offset,
                       nb::handle bytes, nb::handle stream) {
    return start(*context, prepare(context, Direction::read, file, to, offset, bytes, stream));
}

std::size_t write_file(const Context& context, nb::handle file, nb::handle from, nb::handle offset,
                       nb::handle bytes, nb::handle truncate, nb::handle sync, nb::handle stream) {
    return run(*context, prepare_write(context, file, from, offset, bytes, truncate, sync, stream));
}

Handle write_file_async(const Context& context, nb::handle file, nb::handle from, nb::handle offset,
                        nb::handle bytes, nb::handle truncate, nb::handle sync, nb::handle stream) {
    return start(*context,
                 prepare_write(context, file, from, offset, bytes, truncate, sync, stream));
}

}  // namespace waywiser::python
