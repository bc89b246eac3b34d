// What the driver says about a GPU.
#pragma once

#include "trace/process_file.hpp"

namespace waywiser::trace {

// By its number in this process. Creates no context.
GpuFacts describe_gpu(int number);

}  // namespace waywiser::trace
