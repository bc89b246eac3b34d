// Where pages of host memory are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/activity.hpp"

namespace waywiser::trace {

// Asks the system for at most 16 pages of a range, evenly spread. Changes nothing, and touches
// none.
PageSample sample_pages(const void* data, std::uint64_t bytes);

}  // namespace waywiser::trace
