// The tables by which CPython finds the line of an instruction.
#pragma once

#include <cstdint>
#include <span>

namespace waywiser::trace {

// The line of the instruction at a byte offset of its code; 0: none. `minor`: of the version of
// Python, which decides the form of the table.
int line_of(int minor, std::span<const std::uint8_t> table, int first_line, int instruction);

}  // namespace waywiser::trace
