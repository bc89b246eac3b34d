#include "transfer/list_method.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "transfer/list_pipeline.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kWidest = 16;
constexpr std::size_t kLongestRunOfPipeline = std::size_t{512} << 10;
// Fewer pieces are not worth a table.
constexpr std::size_t kFewRuns = 4;
// Bytes in flight per block: 1,024 threads with 8 accesses of 16 bytes.
constexpr std::size_t kBytesOfBlock = std::size_t{128} << 10;

bool with_host(ListPath path) { return path == ListPath::from_host || path == ListPath::to_host; }

unsigned most_blocks(const ListTraits& traits, const ListLimits& limits) {
    const unsigned all = std::max(limits.multiprocessors, 1U);
    if (traits.path == ListPath::within_gpu) return all;
    const unsigned standard = traits.host_contiguous ? 1 : kMultiprocessorsOverLink;
    return std::min(limits.most_over_link != 0 ? limits.most_over_link : standard, all);
}

// No more than have something to do.
unsigned useful_blocks(std::size_t bytes, unsigned most) {
    const std::size_t work = (bytes + kBytesOfBlock - 1) / kBytesOfBlock;
    return static_cast<unsigned>(std::clamp<std::size_t>(work, 1, most));
}

// Tables for runs shorter than an access would be as long as the data. One of two GPUs may have no
// access to the other's pools and mapped ranges: copies have it.
bool can_be_moved_by_kernel(const ListTraits& traits) {
    return (traits.run >= kWidest || traits.table_entries() == 0) &&
           traits.path != ListPath::between_gpus;
}

// Whether a pipeline can move the list: the chunks of the host are contiguous, and hold a run.
bool can_be_moved_by_pipeline(const ListTraits& traits, const ListLimits& limits) {
    return limits.of_pipeline != 0 && !limits.spare_engine && with_host(traits.path) &&
           traits.host_contiguous && traits.run <= kLongestRunOfPipeline &&
           (traits.run >= kWidest || traits.pipeline_entries() == 0);
}

// The bytes of the list that a list of this part belongs to.
std::size_t bytes_of_list(const ListTraits& traits, const ListLimits& limits) {
    return std::max(limits.list_bytes, traits.bytes);
}

// The merged pieces of that list, if all are like those of this part.
std::size_t pieces_of_list(const ListTraits& traits, const ListLimits& limits) {
    const std::size_t mean = std::max<std::size_t>(traits.bytes / traits.merged, 1);
    return std::max(traits.merged, bytes_of_list(traits, limits) / mean);
}

// Seconds that a pipeline takes. Parts of a list share its start and end.
double pipeline_seconds(const ListTraits& traits, const ListLimits& limits,
                        const ListCosts& costs) {
    const auto bytes = static_cast<double>(traits.bytes);
    const double share = bytes / static_cast<double>(bytes_of_list(traits, limits));
    const double width = static_cast<double>(traits.gpu_access) / kWidest;
    const double kernels =
        costs.block_bandwidth_within_gpu * static_cast<double>(limits.of_pipeline) * width;
    return share * costs.pipeline_seconds +
           static_cast<double>(traits.pipeline_entries()) * costs.table_seconds_per_entry +
           bytes / std::min(costs.pipeline_bandwidth, kernels);
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

std::size_t ListTraits::pipeline_entries() const {
    const std::size_t pitch = path == ListPath::to_host ? from_pitch : to_pitch;
    return run == 0 || pitch != 0 ? 0 : bytes / run;
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
    std::uintptr_t to_bits = traits.run;
    std::uintptr_t from_bits = traits.run;
    for (const Piece& piece : pieces) {
        to_bits |= reinterpret_cast<std::uintptr_t>(piece.to);
        from_bits |= reinterpret_cast<std::uintptr_t>(piece.from);
    }
    traits.access = common_access(to_bits | from_bits);
    traits.gpu_access = common_access(path == ListPath::to_host ? from_bits : to_bits);
    if (path == ListPath::to_host) traits.host_contiguous = is_contiguous(pieces, ListSide::to);
    if (path == ListPath::from_host) traits.host_contiguous = is_contiguous(pieces, ListSide::from);
    return traits;
}

ListChoice pipeline_of(const ListTraits& traits, const ListLimits& limits,
                       const PolicyDecision* made) {
    PipelineShape shape{.chunk = limits.pipeline_chunk, .blocks = limits.of_pipeline};
    if (made != nullptr) {
        shape.chunk = std::min(shape.chunk, made->shape.chunk);
        shape.slots = std::min(shape.slots, made->shape.slots);
        if (made->blocks != 0) shape.blocks = made->blocks;
    }
    const unsigned most = std::min(shape.blocks, std::max(limits.multiprocessors, 1U));
    return {.method = ListMethod::pipeline,
            .blocks = useful_blocks(std::min(shape.chunk, bytes_of_list(traits, limits)), most),
            .chunk = shape.chunk,
            .slots = shape.slots,
            .policy = made};
}

ListChoice choose_list_method(const ListTraits& traits, const ListLimits& limits,
                              const ListCosts& costs) {
    if (traits.merged <= kFewRuns || traits.run == 0) return {};
    const auto pieces = static_cast<double>(traits.merged);
    const auto bytes = static_cast<double>(traits.bytes);
    const unsigned blocks = useful_blocks(traits.bytes, most_blocks(traits, limits));
    const bool kernel_can = can_be_moved_by_kernel(traits);
    const double width = static_cast<double>(traits.access) / kWidest;
    const double by_kernel =
        costs.kernel_seconds +
        static_cast<double>(traits.table_entries()) * costs.table_seconds_per_entry +
        bytes / (kernel_bandwidth(traits.path, blocks, costs) * width);
    // Parts of a list share the start of the first call.
    const double started = std::min(pieces, static_cast<double>(kMostInBatch)) *
                           costs.engine_seconds_before *
                           (bytes / static_cast<double>(bytes_of_list(traits, limits)));
    const double by_engine =
        started + std::max(pieces * costs.engine_seconds_per_piece,
                           bytes / (with_host(traits.path) ? costs.engine_bandwidth
                                                           : costs.engine_bandwidth_of_gpus));
    const double by_others = kernel_can ? std::min(by_engine, by_kernel) : by_engine;
    if (can_be_moved_by_pipeline(traits, limits) &&
        pipeline_seconds(traits, limits, costs) < by_others) {
        return pipeline_of(traits, limits);
    }
    if (kernel_can && (limits.spare_engine || by_kernel < by_engine)) {
        return {.method = ListMethod::kernel, .blocks = blocks};
    }
    return {.method = ListMethod::batch};
}

namespace {

ListChoice preferred(const ListTraits& traits, const ListLimits& limits,
                     const PolicyTable* policy) {
    const ListChoice standard = choose_list_method(traits, limits);
    if (policy == nullptr || limits.spare_engine || traits.merged < 2 || traits.run == 0) {
        return standard;
    }
    const PolicyKey key = key_of(traits.path);
    using Lists = PolicyTable::Lists;
    const bool contiguous = traits.host_contiguous && policy->has(key, Lists::host_contiguous);
    // Rows of lists that are scattered on both sides are of no pipeline.
    if (!contiguous && standard.method == ListMethod::pipeline) return standard;
    const PolicyDecision* made =
        policy->list(key, contiguous ? Lists::host_contiguous : Lists::scattered,
                     pieces_of_list(traits, limits), traits.bytes / traits.merged);
    if (made == nullptr) return standard;
    switch (made->method) {
        case PolicyMethod::plain: return {.method = ListMethod::copies, .policy = made};
        case PolicyMethod::batch: return {.method = ListMethod::batch, .policy = made};
        case PolicyMethod::pipeline:
            return can_be_moved_by_pipeline(traits, limits) ? pipeline_of(traits, limits, made)
                                                            : standard;
        case PolicyMethod::kernel: break;
        default: return standard;
    }
    if (!can_be_moved_by_kernel(traits)) return standard;
    unsigned most = most_blocks(traits, limits);
    if (made->blocks != 0) most = std::min(made->blocks, std::max(limits.multiprocessors, 1U));
    return {
        .method = ListMethod::kernel, .blocks = useful_blocks(traits.bytes, most), .policy = made};
}

}  // namespace

ListChoice choose_list_method(const ListTraits& traits, const ListLimits& limits,
                              const PolicyTable* policy) {
    ListChoice choice = preferred(traits, limits, policy);
    if (choice.method == ListMethod::kernel && !limits.kernel_reaches) {
        choice = {.method = ListMethod::batch};
    }
    if (choice.method == ListMethod::batch && !limits.has_batch) choice.method = ListMethod::copies;
    return choice;
}

}  // namespace waywiser::transfer
