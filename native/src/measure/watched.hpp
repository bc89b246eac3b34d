// Executions for nothing but to be watched by counters of links.
#pragma once

#include <cstddef>
#include <functional>

#include "measure/timer.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// Executes the workload one by one, as an application would start it: so often that its largest
// transfer moves some 256 MiB, where that takes a tenth of a second at most, and in any case once.
// `seconds` is about what an execution takes.
void be_watched(Timer& timer, const std::function<void(std::size_t)>& condition,
                const Request& request, double seconds, const Evidence& evidence);

}  // namespace waywiser::measure
