// Extra executions while link counters are read.
#pragma once

#include <cstddef>
#include <functional>

#include "measure/timer.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// Executes the workload one by one, as an application would start it, until its largest transfer
// has moved about 256 MiB or 0.1 s has passed, but at least once. `seconds` is the expected time of
// an execution.
void run_for_evidence(Timer& timer, const std::function<void(std::size_t)>& condition,
                      const Request& request, double seconds, const Evidence& evidence);

}  // namespace waywiser::measure
