#include "measure/bounded_engine.hpp"

#include <map>

#include "measure/executor_of.hpp"

namespace waywiser::measure {
namespace {

// Fraction of the limit that host staging may use, if enough remains for the buffers, so that it
// need not be reallocated for the next size.
constexpr std::size_t kStagingFraction = 4;

}  // namespace

// The requirements of all transfers together.
BoundedEngine::Budget BoundedEngine::needs(const Request& request) const {
    Budget sum;
    std::map<int, std::size_t> relays;
    for (const Transfer& transfer : request.transfers) {
        const Executor& executor = executor_of(transfer);
        const Requirements one = executor.requirements(transfer, machine_);
        sum.pinned += one.pinned_bytes;
        for (const auto& [gpu, bytes] : one.device_bytes) relays[gpu] += bytes;
    }
    for (const auto& [gpu, bytes] : relays) {
        sum.relay = std::max(sum.relay, bytes);
        sum.relays.insert(gpu);
    }
    return sum;
}

transfer::Engine& BoundedEngine::prepare(const Request& request, std::size_t buffer_bytes) {
    const Budget needed = needs(request);
    required_ = needed.total();
    const std::size_t unreserved = limit_ - std::min(limit_, buffer_bytes);
    const std::size_t left = unreserved - std::min(unreserved, needed.of_relays());
    // An engine divides its pinned memory among the nodes, and a transfer uses that of one.
    const auto nodes = static_cast<std::size_t>(
        std::ranges::count_if(machine_.numa, [](const NumaNode& n) { return !n.cpus.empty(); }));
    const std::size_t useful = std::min(left, needed.pinned * std::max<std::size_t>(nodes, 1));
    if (engine_) {
        Budget kept = budget_;
        kept.relays.insert(needed.relays.begin(), needed.relays.end());
        const bool enough = kept.pinned >= useful && kept.relay >= needed.relay;
        if (enough && kept.total() <= unreserved) {
            budget_ = std::move(kept);
            return *engine_;
        }
    }
    engine_.reset();  // frees its memory before more is allocated
    budget_ = needed;
    const std::size_t generous = needed.pinned > 0 ? std::min(left, limit_ / kStagingFraction) : 0;
    budget_.pinned = std::max(useful, generous);
    // 0 would select the engine's default.
    engine_ = transfer::Engine::make(
        machine_, transfer::EngineOptions{.pinned_bytes = std::max<std::size_t>(budget_.pinned, 1),
                                          .relay_bytes = std::max<std::size_t>(budget_.relay, 1),
                                          .peer_access = peer_access_});
    return *engine_;
}

}  // namespace waywiser::measure
