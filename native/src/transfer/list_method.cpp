#include "transfer/list_method.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace waywiser::transfer {
namespace {

constexpr std::size_t kWidest = 16;
// Fewer pieces are not worth a table.
constexpr std::size_t kFewRuns = 4;
// Bytes in flight per block: 1,024 threads with 8 accesses of 16 bytes.
constexpr std::size_t kBytesOfBlock = std::size_t{128} << 10;

bool with_host(ListPath path) { return path == ListPath::from_host || path == ListPath::to_host; }

unsigned most_blocks(ListPath path, const ListLimits& limits) {
    const unsigned all = std::max(limits.multiprocessors, 1U);
    if (path == ListPath::within_gpu) return all;
    return std::clamp(limits.most_over_link, 1U, all);
}

// No more than have something to do.
unsigned useful_blocks(const ListTraits& traits, unsigned most) {
    const std::size_t work = (traits.bytes + kBytesOfBlock - 1) / kBytesOfBlock;
    return static_cast<unsigned>(std::clamp<std::size_t>(work, 1, most));
}

// Tables for runs shorter than an access would be as long as the data. One of two GPUs may have no
// access to the other's pools and mapped ranges: copies have it.
bool can_be_moved_by_kernel(const ListTraits& traits) {
    return (traits.run >= kWidest || traits.table_entries() == 0) &&
           traits.path != ListPath::between_gpus;
}

PolicyKey key_of(ListPath path) {
    switch (path) {
        case ListPath::from_host: return {.from = PolicyMemory::pinned, .to = PolicyMemory::device};
        case ListPath::to_host: return {.from = PolicyMemory::device, .to = PolicyMemory::pinned};
        default: break;
    }
    return {
        .from = PolicyMemory::device,
        .to = PolicyMemory::device,
        .relation = path == ListPath::within_gpu ? PolicyRelation::same : PolicyRelation::peers};
}

// Bytes per second of a kernel with accesses of 16 bytes.
double kernel_bandwidth(ListPath path, unsigned blocks, const ListCosts& costs) {
    const auto all = [blocks](double one) { return one * static_cast<double>(blocks); };
    switch (path) {
        case ListPath::from_host:
            return std::min(all(costs.block_bandwidth_to_gpu), costs.kernel_bandwidth);
        case ListPath::to_host:
            return std::min(all(costs.block_bandwidth_to_host), costs.kernel_bandwidth);
        default: return all(costs.block_bandwidth_within_gpu);
    }
}

}  // namespace

std::size_t ListTraits::table_entries() const {
    const std::size_t sides = (to_pitch == 0 ? 1U : 0U) + (from_pitch == 0 ? 1U : 0U);
    return run == 0 ? 0 : sides * (bytes / run);
}

std::size_t common_access(std::uintptr_t bits) {
    const std::size_t access = std::size_t{1} << std::countr_zero(bits | kWidest);
    return access == 2 ? 1 : access;
}

ListTraits traits_of(std::span<const Piece> pieces, ListPath path) {
    ListTraits traits{.path = path,
                      .bytes = bytes_of(pieces),
                      .merged = merged_count(pieces),
                      .run = common_run(pieces),
                      .to_pitch = pitch_of(pieces, ListSide::to),
                      .from_pitch = pitch_of(pieces, ListSide::from)};
    std::uintptr_t bits = traits.run;
    for (const Piece& piece : pieces) {
        bits |= reinterpret_cast<std::uintptr_t>(piece.to) |
                reinterpret_cast<std::uintptr_t>(piece.from);
    }
    traits.access = common_access(bits);
    return traits;
}

ListChoice choose_list_method(const ListTraits& traits, const ListLimits& limits,
                              const ListCosts& costs) {
    if (traits.merged <= kFewRuns || traits.run == 0) return {};
    const auto pieces = static_cast<double>(traits.merged);
    const auto bytes = static_cast<double>(traits.bytes);
    const unsigned blocks = useful_blocks(traits, most_blocks(traits.path, limits));
    const bool kernel_can = can_be_moved_by_kernel(traits);
    const double width = static_cast<double>(traits.access) / kWidest;
    const double by_kernel =
        costs.kernel_seconds +
        static_cast<double>(traits.table_entries()) * costs.table_seconds_per_entry +
        bytes / (kernel_bandwidth(traits.path, blocks, costs) * width);
    const double by_engine = std::max(
        pieces * costs.engine_seconds_per_piece,
        bytes / (with_host(traits.path) ? costs.engine_bandwidth : costs.engine_bandwidth_of_gpus));
    if (kernel_can && (limits.spare_engine || by_kernel < by_engine)) {
        return {.method = ListMethod::kernel, .blocks = blocks};
    }
    return {.method = ListMethod::batch};
}

ListChoice choose_list_method(const ListTraits& traits, const ListLimits& limits,
                              const PolicyTable* policy) {
    const ListChoice standard = choose_list_method(traits, limits);
    if (policy == nullptr || limits.spare_engine || traits.merged < 2 || traits.run == 0) {
        return standard;
    }
    const PolicyDecision* made =
        policy->list(key_of(traits.path), traits.merged, traits.bytes / traits.merged);
    if (made == nullptr) return standard;
    switch (made->method) {
        case PolicyMethod::plain: return {.method = ListMethod::copies};
        case PolicyMethod::batch: return {.method = ListMethod::batch};
        case PolicyMethod::kernel: break;
        default: return standard;
    }
    if (!can_be_moved_by_kernel(traits)) return standard;
    unsigned most = most_blocks(traits.path, limits);
    if (made->blocks != 0) most = std::min(made->blocks, std::max(limits.multiprocessors, 1U));
    return {.method = ListMethod::kernel, .blocks = useful_blocks(traits, most)};
}

}  // namespace waywiser::transfer
