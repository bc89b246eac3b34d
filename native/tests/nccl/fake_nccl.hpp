// The fake NCCL in the tests' process.
#pragma once

#include "nccl/communicators.hpp"

namespace waywiser::test {

// The shared library, which each build compiles for itself.
const char* fake_nccl_file();
// Configures the library, which is loaded if it was not: see fake/nccl/nccl.cpp.
void configure_fake_nccl(const char* text);
// Ends what hangs. The communicators stay usable for their destructor only.
void end_fake_nccl(const nccl::Communicators& communicators);

}  // namespace waywiser::test
