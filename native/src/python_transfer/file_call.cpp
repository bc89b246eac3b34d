#include "file_call.hpp"

#include <limits>
#include <string>
#include <utility>

#include "errors.hpp"

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

// An argument that is True or False.
bool truth_of(nb::handle value, const char* name) {
    if (PyBool_Check(value.ptr())) return value.is(nb::bool_(true));
    raise(Failure::invalid_operand,
          {.what = std::string(name) + " is " + given(value) + ", which is neither True nor False",
           .where = text(Direction::write),
           .remedy = std::string("pass ") + name + "=True or " + name + "=False"});
}

void check_contiguous(const Operand& operand, Direction direction) {
    if (operand.contiguous) return;
    raise(Failure::unsupported, {.what = "the array is not contiguous: " + text(operand),
                                 .where = text(direction),
                                 .remedy = direction == Direction::read
                                               ? "read into a contiguous array and copy from there"
                                               : "make it contiguous first"});
}

void check_range(std::uint64_t offset, std::uint64_t bytes, const Operand& operand,
                 Direction direction) {
    if (bytes > operand.bytes) {
        raise(Failure::invalid_transfer,
              {.what = "nbytes is " + std::to_string(bytes) + ", but the array has " +
                       std::to_string(operand.bytes) + " bytes",
               .where = text(direction),
               .remedy = "pass a longer array, or leave nbytes out for all of it"});
    }
    constexpr auto kEnd = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (offset <= kEnd - bytes) return;
    raise(Failure::invalid_transfer,
          {.what = std::to_string(bytes) + " bytes from offset " + std::to_string(offset) +
                   " go past what a file can have (2^63 - 1)",
           .where = text(direction),
           .remedy = "pass a smaller offset"});
}

}  // namespace

std::uint32_t flags_of(nb::handle truncate, nb::handle sync) {
    return (truth_of(truncate, "truncate") ? WAYWISER_WRITE_TRUNCATE : 0U) |
           (truth_of(sync, "sync") ? WAYWISER_WRITE_SYNC : 0U);
}

FileCall prepare_memory(const Context& context, Direction direction, nb::handle array,
                        nb::handle offset, nb::handle bytes,
                        const std::optional<void*>& requested) {
    FileCall call{.direction = direction};
    const bool reads = direction == Direction::read;
    Operand operand;
    read_operand(array, reads ? Role::destination : Role::source, requested, operand,
                 reads ? call.kept.to : call.kept.from);
    check_contiguous(operand, direction);
    call.offset = number_of(offset, "offset", direction, 0);
    const std::uint64_t nbytes = number_of(bytes, "nbytes", direction, operand.bytes);
    check_range(call.offset, nbytes, operand, direction);
    context->check_reaches(operand);
    call.data = operand.data;
    call.bytes = static_cast<std::size_t>(nbytes);
    call.host = operand.gpu == kHost;
    call.streams = choose_streams(requested, operand, operand);
    call.is_torch = operand.is_torch;
    call.names_stream = requested.has_value();
    return call;
}

void add_file(nb::handle file, nb::handle array, FileCall& call) {
    call.file = file_of(file, call.direction);
    if (call.direction == Direction::read && call.is_torch) note_torch_write(array);
}

}  // namespace waywiser::python
