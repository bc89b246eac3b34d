// The memory of one side of a copy.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "transfer/chunked_copy.hpp"

namespace waywiser::transfer {

// Invalid arguments.
class InvalidCopy : public std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

struct Side {
    Endpoint end;
    bool managed = false;
    bool uniform = true;  // one call of the runtime can copy all of it
};
Side side_of(void* data, std::size_t bytes);

// Throws InvalidCopy for a null pointer and for a range beyond the address space. `call`
// and `argument` are their names in the message.
void check_range(const void* data, std::size_t bytes, const char* call, const char* argument);

// Whether two ranges of so many bytes have bytes in common.
bool overlap(const void* a, const void* b, std::size_t bytes);
// Throws InvalidCopy if either range is invalid or they overlap.
void check_copy(const void* to, const void* from, std::size_t bytes);
// Whether a GPU can access all of the memory, and nothing moves it meanwhile.
bool gpu_reaches(const Side& side);
// The GPU of either side, or -1.
int operand_gpu(const Side& to, const Side& from);

}  // namespace waywiser::transfer
