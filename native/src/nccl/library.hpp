// NCCL, loaded when it is first used and never linked. It stays loaded until the process ends,
// since it enables peer access by itself: a process that measures without it must not load it.
#pragma once

#include <stdexcept>
#include <string>

#include "nccl/functions.hpp"

namespace waywiser::nccl {

// A call of the library failed; what() is one line.
class Error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The file to load: that of WAYWISER_NCCL, else that of use_file(); empty if there is none.
std::string file();
// Names the library of the system or of a Python environment, for later calls. Any thread may call
// it. Has no effect after a library was loaded.
void use_file(const std::string& path);
// Why there is no library to load, with the remedy; empty if there is one. Loads nothing.
std::string missing_reason();

// Loads it at the first call. Throws NotSupported if it does not load.
const Functions& functions();
// "2.27.3"; loads it. Throws NotSupported, Error.
std::string version();

// Throws Error if a call has failed; one of ranks that do not block may go on.
void check(Result result, const char* call);

}  // namespace waywiser::nccl
