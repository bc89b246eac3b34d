// The copies of this project's transfer library, by the hook that it has for tracers.
#pragma once

#include <string>

namespace waywiser::trace {

// Registers this library as the tracer if the transfer library is loaded and that was not done.
// `why_not`: one line if another tracer is set.
void join_transfer_library(std::string& why_not);

}  // namespace waywiser::trace
