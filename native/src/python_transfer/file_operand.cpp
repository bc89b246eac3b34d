#include "file_operand.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "errors.hpp"
#include "gil_release.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

[[noreturn]] void reject_file(const std::string& call, int error) {
    raise(Failure::file,
          {.what = std::strerror(error), .where = call, .remedy = file_remedy(error)}, 0, error);
}

[[noreturn]] void reject_closed(const std::string& call) {
    raise(Failure::file,
          {.what = "this descriptor is not open",
           .where = call,
           .remedy = "pass the number of an open file, or its path"},
          0, EBADF);
}

// "read 'weights.bin'", on one line for any name.
std::string call_on(Direction direction, nb::handle name) {
    const nb::object shown = nb::steal(PyObject_Repr(name.ptr()));
    if (!shown.is_valid()) throw nb::python_error();
    return std::string(text(direction)) + " " + printed(shown);
}

void check_offsets_count(const File& file) {
    const int flags = fcntl(file.descriptor(), F_GETFL);
    if (flags < 0 || (flags & O_APPEND) == 0) return;
    raise(Failure::invalid_transfer,
          {.what = "the file is open for appending, and the system ignores offsets then",
           .where = file.call(),
           .remedy = "open it with the mode 'r+b', or without O_APPEND"});
}

File duplicate(int descriptor, Direction direction, std::string call) {
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        if (errno == EBADF) reject_closed(call);
        reject_file(call, errno);
    }
    File file(copy, std::move(call));
    if (direction == Direction::write) check_offsets_count(file);
    return file;
}

// The kind of a file without offsets, for a message.
const char* kind_of(mode_t mode) {
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode)) return "a character device";
    return "a special file";
}

void check_kind(const struct stat& status, const std::string& call) {
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) return;
    if (S_ISDIR(status.st_mode)) reject_file(call, EISDIR);
    raise(Failure::file,
          {.what = std::string("it is ") + kind_of(status.st_mode),
           .where = call,
           .remedy = file_remedy(ESPIPE)},
          0, ESPIPE);
}

// Whether a block of the bytes is in the page cache, and then reads it. A different one in each
// call: the block is cached afterwards.
bool reads_cached_block(int file, std::byte* to, std::size_t bytes, std::uint64_t offset) {
    constexpr std::size_t kBlock = 4096;
    const auto now =
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    const std::size_t at = (now ^ (now >> 12U)) % (bytes / kBlock) * kBlock;
    const iovec block{.iov_base = to + at, .iov_len = kBlock};
    return preadv2(file, &block, 1, static_cast<off_t>(offset + at), RWF_NOWAIT) > 0;
}

// The library reads what is not cached from the disk by several threads. That takes it less time
// from about so many bytes on.
constexpr std::size_t kMoreThreads = std::size_t{1} << 20;

std::optional<std::size_t> read_all(int file, std::byte* to, std::size_t bytes,
                                    std::uint64_t offset) {
    if (bytes > kMoreThreads && !reads_cached_block(file, to, bytes, offset)) return std::nullopt;
    std::size_t moved = 0;
    while (moved < bytes) {
        const ssize_t now =
            pread(file, to + moved, bytes - moved, static_cast<off_t>(offset + moved));
        if (now < 0) return std::nullopt;
        if (now == 0) break;
        moved += static_cast<std::size_t>(now);
    }
    return moved;
}

struct Opened {
    int descriptor = -1;
    int error = 0;
    struct stat status{};
};

// Opens the file without waiting: to open a FIFO would wait for its other end, and to open a device
// can change it. `descriptor` is -1 if the file is none that is opened, or after an error.
Opened open_without_waiting(const char* name, int flags) {
    Opened opened;
    const bool exists = stat(name, &opened.status) == 0;
    if (exists && !S_ISREG(opened.status.st_mode) && !S_ISBLK(opened.status.st_mode)) return opened;
    opened.descriptor = open(name, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    // Another file may have taken the name since.
    if (opened.descriptor < 0 || fstat(opened.descriptor, &opened.status) != 0 ||
        fcntl(opened.descriptor, F_SETFL, flags) != 0) {
        opened.error = errno;
    }
    return opened;
}

// The path as the system takes it.
nb::bytes name_of(nb::handle path, Direction direction) {
    PyObject* converted = nullptr;
    if (PyUnicode_FSConverter(path.ptr(), static_cast<void*>(&converted)) != 0) {
        return nb::steal<nb::bytes>(converted);
    }
    nb::python_error why;
    const bool is_name = PyUnicode_Check(path.ptr()) || PyBytes_Check(path.ptr());
    if (!is_name || !why.matches(PyExc_ValueError)) throw why;  // the object raised it
    raise(Failure::invalid_transfer, {.what = printed(why.value()),
                                      .where = call_on(direction, path),
                                      .remedy = "pass the path of a file"});
}

File open_path(nb::handle path, Direction direction) {
    const nb::bytes name = name_of(path, direction);
    const nb::object decoded = nb::steal(PyUnicode_DecodeFSDefault(name.c_str()));
    if (!decoded.is_valid()) throw nb::python_error();
    const std::string call = call_on(direction, decoded);
    const int flags = direction == Direction::read ? O_RDONLY : O_WRONLY | O_CREAT;
    for (;;) {
        Opened opened;
        {
            const GilRelease unlocked;
            opened = open_without_waiting(name.c_str(), flags);
        }
        File file(opened.descriptor, call);
        if (opened.error == 0) {
            check_kind(opened.status, call);
            return file;
        }
        if (opened.error != EINTR) reject_file(call, opened.error);
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
}

bool is_path(nb::handle file) {
    return PyUnicode_Check(file.ptr()) || PyBytes_Check(file.ptr()) ||
           attribute(file, "__fspath__").is_valid();
}

// A type of the module io, which is never unloaded; null if there is none.
PyObject* type_of_io(const char* name) {
    const nb::object module = nb::steal(PyImport_ImportModule("io"));
    PyObject* const type = module.is_valid() ? PyObject_GetAttrString(module.ptr(), name) : nullptr;
    PyErr_Clear();
    return type;
}

// Whether it is a file of Python that has nothing to flush before a read.
bool is_unbuffered_or_only_read(nb::handle file) {
    static PyObject* const unbuffered = type_of_io("FileIO");
    static PyObject* const only_read = type_of_io("BufferedReader");
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(file.ptr()));
    return type == unbuffered || type == only_read;
}

// The number of a descriptor; -1 if it is none.
int descriptor_of(nb::handle number) {
    const long value = PyLong_AsLong(number.ptr());
    return value >= 0 && value <= INT_MAX ? static_cast<int>(value) : -1;
}

// Flushes the object's buffer, so that it is written before this write or included in this read.
void flush_object(nb::handle file, Direction direction) {
    const nb::object flush = attribute(file, "flush");
    if (!flush.is_valid()) return;
    const nb::object writable = attribute(file, "writable");
    const bool only_read = writable.is_valid() && !nb::cast<bool>(writable());
    if (direction == Direction::read && only_read) return;
    flush();
}

}  // namespace

const char* text(Direction direction) { return direction == Direction::read ? "read" : "write"; }

File file_of(nb::handle file, Direction direction) {
    if (PyLong_Check(file.ptr()) && !PyBool_Check(file.ptr())) {
        const std::string call = std::string(text(direction)) + " descriptor " + printed(file);
        int descriptor = -1;
        if (!nb::try_cast(file, descriptor)) reject_closed(call);
        return duplicate(descriptor, direction, call);
    }
    if (is_path(file)) return open_path(file, direction);
    const nb::object fileno = attribute(file, "fileno");
    if (!fileno.is_valid()) {
        raise(Failure::invalid_operand, {.what = "the file is " + given(file),
                                         .where = text(direction),
                                         .remedy = "pass a path, a descriptor or a file object"});
    }
    flush_object(file, direction);
    const nb::object number = fileno();
    int descriptor = -1;
    if (!nb::try_cast(number, descriptor)) {
        raise(Failure::invalid_operand,
              {.what = "fileno() of the file gave " + given(number) + ", no descriptor",
               .where = text(direction),
               .remedy = "pass a path, a descriptor or a file object"});
    }
    const nb::object name = attribute(file, "name");
    const bool named = name.is_valid() && !PyLong_Check(name.ptr());
    return duplicate(
        descriptor, direction,
        named ? call_on(direction, name)
              : std::string(text(direction)) + " descriptor " + std::to_string(descriptor));
}

void check_access(const File& file, Direction direction) {
    const int flags = fcntl(file.descriptor(), F_GETFL);
    const int other = direction == Direction::read ? O_WRONLY : O_RDONLY;
    if (flags < 0 || (flags & O_ACCMODE) != other) return;
    raise(Failure::file,
          {.what = "the file is not open for this",
           .where = file.call(),
           .remedy = file_remedy(EBADF)},
          0, EBADF);
}

QuickFile QuickFile::of(nb::handle file) {
    QuickFile quick(-1);
    if (PyLong_CheckExact(file.ptr())) {
        quick.descriptor_ = descriptor_of(file);
        PyErr_Clear();
        return quick;
    }
    if (is_unbuffered_or_only_read(file)) {
        static PyObject* const name = PyUnicode_InternFromString("fileno");
        std::array self{file.ptr()};
        const nb::object number =
            nb::steal(PyObject_VectorcallMethod(name, self.data(), self.size(), nullptr));
        if (number.is_valid()) quick.descriptor_ = descriptor_of(number);
        PyErr_Clear();
        return quick;
    }
    PyObject* name = nullptr;
    if ((PyUnicode_Check(file.ptr()) || PyBytes_Check(file.ptr()) ||
         PyObject_HasAttrString(file.ptr(), "__fspath__") != 0) &&
        PyUnicode_FSConverter(file.ptr(), static_cast<void*>(&name)) != 0) {
        quick.name_ = nb::steal(name);
        quick.path_ = PyBytes_AsString(name);
    }
    PyErr_Clear();  // the call that opens it for messages raises it again
    return quick;
}

std::optional<std::size_t> QuickFile::read(std::byte* to, std::size_t bytes,
                                           std::uint64_t offset) const {
    if (path_ == nullptr) {
        return descriptor_ < 0 ? std::nullopt : read_all(descriptor_, to, bytes, offset);
    }
    struct stat status{};
    // To open a FIFO would wait for its other end, and to open a device can change it.
    if (stat(path_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    const int opened = open(path_, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (opened < 0) return std::nullopt;
    std::optional<std::size_t> moved;
    // Another file may have taken the name since.
    if (fstat(opened, &status) == 0 && S_ISREG(status.st_mode)) {
        moved = read_all(opened, to, bytes, offset);
    }
    close(opened);
    return moved;
}

}  // namespace waywiser::python
