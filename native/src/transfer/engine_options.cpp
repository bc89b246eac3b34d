#include "transfer/engine_options.hpp"

#include <algorithm>

#include "transfer/limits.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kPinnedPerThread = std::size_t{16} << 20;
constexpr std::size_t kRelayBytes = std::size_t{64} << 20;
// The fraction of the pinned memory for tables of lists.
constexpr std::size_t kListFraction = 16;
constexpr std::size_t kLeastForLists = std::size_t{1} << 20;
constexpr std::size_t kLeastOfLists = std::size_t{128} << 10;

}  // namespace

EngineOptions completed(EngineOptions options) {
    const std::size_t most =
        options.cpus.empty() ? thread_limit() : thread_limit(options.cpus.size(), options.own_cpus);
    options.threads = options.threads == 0 ? most : std::min(options.threads, most);
    options.pinned_bytes = pinned_limit(
        options.pinned_bytes != 0 ? options.pinned_bytes : options.threads * kPinnedPerThread);
    if (options.relay_bytes == 0) options.relay_bytes = kRelayBytes;
    return options;
}

std::size_t least_chunked(const EngineOptions& options) {
    return options.spin_seconds > 0 ? kPlainBelowAwake : kPlainBelow;
}

std::size_t list_table_bytes(const EngineOptions& options) {
    if (options.pinned_bytes < kLeastForLists) return 0;
    return std::max(options.pinned_bytes / kListFraction, kLeastOfLists);
}

}  // namespace waywiser::transfer
