// Files that callers pass: a path, a descriptor, or an object with fileno().
#pragma once

#include <nanobind/nanobind.h>

#include "pending_transfers.hpp"

namespace waywiser::python {

enum class Direction { read, write };

// The name of the call: "read" or "write".
const char* text(Direction direction);

// The file with a new descriptor: the caller may close the original while the transfer runs. A path
// is opened without waiting for another process, and is the path of a regular file or a block
// device. Needs the GIL, and releases it while a path is opened.
File file_of(nanobind::handle file, Direction direction);

}  // namespace waywiser::python
