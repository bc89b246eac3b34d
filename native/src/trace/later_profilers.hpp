// Profilers that start after the tracer. CUPTI has one subscriber and one receiver of records: the
// profiler that the program itself starts gets both, and the tracer goes on without.
#pragma once

#include "trace/cupti.hpp"

namespace waywiser::trace {

// From now on, libraries of this process that are linked to CUPTI get what they register for.
// Called again for libraries that were loaded since.
void make_way_for_profilers(const Cupti& cupti);

}  // namespace waywiser::trace
