// Files that callers pass: a path, a descriptor, or an object with fileno().
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pending_transfers.hpp"

namespace waywiser::python {

enum class Direction { read, write };

// The name of the call: "read" or "write".
const char* text(Direction direction);

// The file with a new descriptor: the caller may close the original while the transfer runs. A path
// is opened without waiting for another process, and is the path of a regular file or a block
// device. Needs the GIL, and releases it while a path is opened.
File file_of(nanobind::handle file, Direction direction);

// Raises TransferFileError if the file is not open for this direction.
void check_access(const File& file, Direction direction);

// A file to read from at once, without what a failure needs for its message.
class QuickFile {
public:
    // The caller's descriptor, that of a file object without anything to flush, or a path; else no
    // file. Needs the GIL, and raises nothing.
    static QuickFile of(nanobind::handle file);
    // The descriptor stays the caller's.
    explicit QuickFile(int descriptor) : descriptor_(descriptor) {}
    // Reads the bytes from `offset` on, fewer at the end of the file. Returns nullopt if anything
    // fails, and for more than a few bytes that are not cached. Call it without the GIL.
    [[nodiscard]] std::optional<std::size_t> read(std::byte* to, std::size_t bytes,
                                                  std::uint64_t offset) const;

private:
    int descriptor_ = -1;
    nanobind::object name_;  // of a path: bytes
    const char* path_ = nullptr;
};

}  // namespace waywiser::python
