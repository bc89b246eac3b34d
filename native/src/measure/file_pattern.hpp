// The pattern of measure/pattern.hpp in files, which no address reaches: through memory of its own.
#pragma once

#include <cstdint>

#include "measure/pattern.hpp"

namespace waywiser::measure {

enum class Content { pattern, complement };

// Writes the bytes of a view of a file. They reach the device when the buffer is brought to its
// state (Buffer::restore), once for all of its pieces: waiting for each takes milliseconds.
void write_file(const View& view, std::uint64_t seed, Content content);
// Compares what the device holds with the pattern.
Mismatch check_file(const View& view, std::uint64_t seed);

// A file that somebody named is not written. So what has arrived is compared with what it holds:
// `source` is of such a file, by descriptor or mapped; `destination` is memory, or a file.
Mismatch compare_with_file(const View& destination, const View& source, const Machine& machine);

}  // namespace waywiser::measure
