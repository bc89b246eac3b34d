// Reads of files into memory of any kind, and writes.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "copies.hpp"
#include "file_operand.hpp"
#include "stream_follower.hpp"
#include "submission.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// An integer from the caller; `fallback` for None.
std::uint64_t number_of(nb::handle number, const char* name, Direction direction,
                        std::uint64_t fallback) {
    if (number.is_none()) return fallback;
    const nb::object index = nb::steal(PyNumber_Index(number.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        raise(Failure::invalid_operand,
              {.what = std::string(name) + " is " + given(number) + ", not a whole number",
               .where = text(direction),
               .remedy = "pass a number of bytes"});
    }
    const long long value = PyLong_AsLongLong(index.ptr());
    if (value >= 0) return static_cast<std::uint64_t>(value);
    PyErr_Clear();
    raise(Failure::invalid_transfer, {.what = std::string(name) + " is " + printed(index) +
                                              ", which is negative or beyond any file",
                                      .where = text(direction),
                                      .remedy = "pass a number of bytes from 0 to 2^63 - 1"});
}

struct FileCall {
    Direction direction;
    File file;
    std::uint64_t offset = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool host = true;
    Streams streams;
    Held held;
};

FileCall prepare(const Context& context, Direction direction, nb::handle file, nb::handle array,
                 nb::handle offset, nb::handle bytes, nb::handle stream) {
    prune();
    context->check_process();
    FileCall call{.direction = direction};
    const std::optional<void*> requested = stream_of(stream);
    Operand operand;
    read_operand(array, direction == Direction::read ? Role::destination : Role::source, requested,
                 operand, call.held);
    if (!operand.contiguous) {
        raise(Failure::unsupported,
              {.what = "the array is not contiguous: " + text(operand),
               .where = text(direction),
               .remedy = direction == Direction::read
                             ? "read into a contiguous array and copy from there"
                             : "make it contiguous first"});
    }
    call.offset = number_of(offset, "offset", direction, 0);
    const std::uint64_t nbytes = number_of(bytes, "nbytes", direction, operand.bytes);
    if (nbytes > operand.bytes) {
        raise(Failure::invalid_transfer,
              {.what = "nbytes is " + std::to_string(nbytes) + ", but the array has " +
                       std::to_string(operand.bytes) + " bytes",
               .where = text(direction),
               .remedy = "pass a longer array, or leave nbytes out for all of it"});
    }
    constexpr auto kEnd = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (call.offset > kEnd - nbytes) {
        raise(Failure::invalid_transfer,
              {.what = std::to_string(nbytes) + " bytes from offset " +
                       std::to_string(call.offset) + " go past what a file can have (2^63 - 1)",
               .where = text(direction),
               .remedy = "pass a smaller offset"});
    }
    context->check_reaches(operand);
    call.data = operand.data;
    call.bytes = static_cast<std::size_t>(nbytes);
    call.host = operand.gpu == kHost;
    call.streams = choose_streams(requested, operand, operand);
    call.file = file_of(file, direction);
    if (direction == Direction::read) note_write(array, operand);
    return call;
}

waywiser_status submit(waywiser_context* context, const FileCall& call, std::size_t at,
                       std::size_t bytes, std::size_t* moved, waywiser_transfer** transfer) {
    if (call.direction == Direction::read) {
        return waywiser_read(context, call.file.descriptor(), call.offset + at, call.data + at,
                             bytes, call.streams.carrier, moved, transfer);
    }
    return waywiser_write(context, call.file.descriptor(), call.offset + at, call.data + at, bytes,
                          call.streams.carrier, moved, transfer);
}

// The calling thread helps, in parts, between which signals are handled.
std::size_t run(ContextState& context, FileCall call) {
    const bool follows = !call.host && call.direction == Direction::read;
    if (call.bytes > 0) wait_for_stream(context, call.streams.carrier);
    StreamFollower follower(call.streams, std::move(call.held));
    std::size_t at = 0;
    while (at < call.bytes) {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        const std::size_t part = std::min(kPart, call.bytes - at);
        std::size_t moved = 0;
        const waywiser_status status = use(context, [&](waywiser_context* c) {
            const waywiser_status now = submit(c, call, at, part, &moved, nullptr);
            return now == WAYWISER_OK && follows ? follower.mark(c) : now;
        });
        at += moved;
        if (status == WAYWISER_IO) {
            raise_status(status, waywiser_last_error(), at, waywiser_last_errno(),
                         call.file.call());
        }
        check_use(status, at);
        if (moved < part) break;  // the end of the file
    }
    return at;
}

Handle start(ContextState& context, FileCall call) {
    if (call.streams.gpu == kSomeGpu && call.bytes > 0) call.streams.gpu = gpu_at(call.data);
    waywiser_transfer* transfer = nullptr;
    if (call.bytes > 0) {
        check_use(use(context, [&](waywiser_context* c) {
            return submit(c, call, 0, call.bytes, nullptr, &transfer);
        }));
    }
    auto pending = std::make_shared<PendingTransfer>(transfer, 0, std::move(call.held),
                                                     call.streams, std::move(call.file));
    keep(pending);
    return pending;
}

}  // namespace

std::size_t read_file(const Context& context, nb::handle file, nb::handle to, nb::handle offset,
                      nb::handle bytes, nb::handle stream) {
    return run(*context, prepare(context, Direction::read, file, to, offset, bytes, stream));
}

Handle read_file_async(const Context& context, nb::handle file, nb::handle to, nb::handle offset,
                       nb::handle bytes, nb::handle stream) {
    return start(*context, prepare(context, Direction::read, file, to, offset, bytes, stream));
}

std::size_t write_file(const Context& context, nb::handle file, nb::handle from, nb::handle offset,
                       nb::handle bytes, nb::handle stream) {
    return run(*context, prepare(context, Direction::write, file, from, offset, bytes, stream));
}

Handle write_file_async(const Context& context, nb::handle file, nb::handle from, nb::handle offset,
                        nb::handle bytes, nb::handle stream) {
    return start(*context, prepare(context, Direction::write, file, from, offset, bytes, stream));
}

}  // namespace waywiser::python
