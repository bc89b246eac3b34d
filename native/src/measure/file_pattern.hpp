// The pattern of measure/pattern.hpp in files, which are written and read through a temporary
// buffer.
#pragma once

#include <cstdint>

#include "measure/pattern.hpp"

namespace waywiser::measure {

enum class Content { pattern, complement };

// Writes the bytes of a file view. Buffer::restore() later flushes all pieces of the buffer to the
// device at once, since each flush takes milliseconds.
void write_file(const View& view, std::uint64_t seed, Content content);
// Compares the bytes on the device with the pattern.
Mismatch check_file(const View& view, std::uint64_t seed);

// A user's file is never written. So this compares the destination with the content of the file.
// `source` is in such a file, by descriptor or mapped; `destination` is memory or a file.
Mismatch compare_with_file(const View& destination, const View& source, const Machine& machine);

}  // namespace waywiser::measure
