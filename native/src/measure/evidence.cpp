#include "measure/evidence.hpp"

#include <algorithm>

namespace waywiser::measure {
namespace {

// A hundred thousand times the unit of the coarsest link counter; all transfers together less than
// half of the smallest counter's range (4 GiB).
constexpr std::size_t kEvidenceBytes = std::size_t{256} << 20;
constexpr std::size_t kMostBytes = std::size_t{2} << 30;
constexpr double kEvidenceSeconds =
    0.1;  // enough even for slow paths, which move less in that time

std::size_t executions_of(const Request& request, double seconds) {
    std::size_t together = 0, largest = 0;
    for (const Transfer& transfer : request.transfers) {
        together += transfer.bytes;
        largest = std::max(largest, transfer.bytes);
    }
    const auto in_time = static_cast<std::size_t>(kEvidenceSeconds / std::max(seconds, 1e-9));
    const std::size_t enough = (kEvidenceBytes + largest - 1) / largest;
    return std::max<std::size_t>(std::min({enough, in_time, kMostBytes / together}), 1);
}

}  // namespace

void run_for_evidence(Timer& timer, const std::function<void(std::size_t)>& condition,
                      const Request& request, double seconds, const Evidence& evidence) {
    const std::size_t executions = executions_of(request, seconds);
    evidence(0);
    for (std::size_t n = 0; n < executions; ++n) {
        condition(1);
        timer.once();
    }
    evidence(executions);
}

}  // namespace waywiser::measure
