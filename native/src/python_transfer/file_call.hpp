// The arguments of reads and writes of files, checked.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "copies.hpp"
#include "file_operand.hpp"
#include "operand.hpp"
#include "streams.hpp"

namespace waywiser::python {

struct FileCall {
    Direction direction;
    File file;
    std::uint64_t offset = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::uint32_t flags = 0;  // of a write
    bool host = true;
    bool is_torch = false;
    bool names_stream = false;  // the caller passed `stream=`
    Streams streams;
    HeldOperands kept;
};

// Flags of a write. Raises InvalidOperand for what is neither True nor False.
std::uint32_t flags_of(nanobind::handle truncate, nanobind::handle sync);
// A read or write without its file. `requested` is the caller's stream. Raises if the array, the
// offset or the bytes, of which None means all, cannot be used.
FileCall prepare_memory(const Context& context, Direction direction, nanobind::handle array,
                        nanobind::handle offset, nanobind::handle bytes,
                        const std::optional<void*>& requested);
// Adds the file, and reports the write to the library of the array that is read into.
void add_file(nanobind::handle file, nanobind::handle array, FileCall& call);

}  // namespace waywiser::python
