#include "trace/records.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace waywiser::trace {
namespace {

Kind kind_of(std::uint32_t cupti_kind) {
    constexpr std::array kKinds{Kind::Unknown, Kind::Pageable, Kind::Pinned, Kind::Device,
                                Kind::Array,   Kind::Managed,  Kind::Device, Kind::Managed};
    return cupti_kind < kKinds.size() ? kKinds[cupti_kind] : Kind::Unknown;
}

// Arrays are memory of a GPU.
Direction direction_of(std::uint32_t cupti_direction) {
    constexpr std::array kDirections{Direction::Unknown,  Direction::ToDevice, Direction::ToHost,
                                     Direction::ToDevice, Direction::ToHost,   Direction::OnDevice,
                                     Direction::OnDevice, Direction::OnDevice, Direction::OnDevice,
                                     Direction::OnHost,   Direction::Peer};
    return cupti_direction < kDirections.size() ? kDirections[cupti_direction] : Direction::Unknown;
}

// Which GPU memory of a kind belongs to, where the record names one.
End end_of(std::uint32_t kind, std::uint32_t gpu) {
    End end{.kind = kind_of(kind)};
    if (end.kind == Kind::Device || end.kind == Kind::Array) end.gpu = static_cast<int>(gpu);
    return end;
}

std::uint64_t shifted(std::uint64_t time, std::int64_t step) {
    return time + static_cast<std::uint64_t>(step);
}

// None if CUPTI could not take the times, which are 0 then.
template <typename Record>
std::optional<Activity> timed(const Record& record, std::int64_t step) {
    if (record.start == 0 || record.end < record.start) return std::nullopt;
    Activity activity;
    activity.gpu = static_cast<int>(record.device);
    activity.stream = record.stream;
    activity.correlation = record.correlation;
    activity.start = shifted(record.start, step);
    activity.end = shifted(record.end, step);
    activity.graph = record.graph != 0;
    return activity;
}

std::optional<Activity> from_copy(const cupti::Copy& copy, std::uint32_t version,
                                  std::int64_t step) {
    auto activity = timed(copy, step);
    if (!activity) return activity;
    activity->direction = direction_of(copy.direction);
    activity->bytes = copy.bytes;
    activity->asynchronous = (copy.flags & cupti::kAsynchronous) != 0;
    activity->from = end_of(copy.from_kind, copy.device);
    activity->to = end_of(copy.to_kind, copy.device);
    if (version >= cupti::kHasCopyCount) {
        activity->count = static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(copy.count, 1, std::numeric_limits<std::uint32_t>::max()));
    }
    return activity;
}

std::optional<Activity> from_peer_copy(const cupti::PeerCopy& copy, std::int64_t step) {
    auto activity = timed(copy, step);
    if (!activity) return activity;
    activity->operation = Operation::PeerCopy;
    activity->direction = Direction::Peer;
    activity->bytes = copy.bytes;
    activity->asynchronous = (copy.flags & cupti::kAsynchronous) != 0;
    activity->from = end_of(copy.from_kind, copy.from_device);
    activity->to = end_of(copy.to_kind, copy.to_device);
    return activity;
}

std::optional<Activity> from_set(const cupti::Set& set, std::int64_t step) {
    auto activity = timed(set, step);
    if (!activity) return activity;
    activity->operation = Operation::Set;
    activity->bytes = set.bytes;
    activity->asynchronous = (set.flags & cupti::kAsynchronous) != 0;
    activity->to = end_of(set.kind, set.device);
    return activity;
}

std::optional<Activity> from_kernel(Aggregator& sums, const cupti::Kernel& kernel,
                                    std::int64_t step) {
    auto activity = timed(kernel, step);
    if (!activity) return activity;
    activity->name = sums.kernel_name(kernel.name);
    activity->what = Aggregator::is_collective(sums.kernel_names()[activity->name])
                         ? Activity::What::Collective
                         : Activity::What::Kernel;
    return activity;
}

void add_managed(Aggregator& sums, const cupti::UnifiedMemory& record) {
    Managed managed{.count = 1};
    managed.nanoseconds = record.end > record.start ? record.end - record.start : 0;
    switch (record.counter) {
        case cupti::kBytesToDevice:
            managed.what = Managed::What::ToDevice;
            managed.gpu = static_cast<int>(record.to_device);
            break;
        case cupti::kBytesToHost:
            managed.what = Managed::What::ToHost;
            managed.gpu = static_cast<int>(record.from_device);
            break;
        case cupti::kBytesBetweenDevices:
            managed.what = Managed::What::OnDevice;
            managed.gpu = static_cast<int>(record.to_device);
            break;
        case cupti::kDeviceFaults:
            managed.what = Managed::What::Fault;
            managed.gpu = static_cast<int>(record.from_device);
            managed.count = record.value;
            break;
        case cupti::kHostFaults: managed.what = Managed::What::Fault; break;
        default: return;
    }
    if (managed.what != Managed::What::Fault) managed.bytes = record.value;
    sums.add(managed);
}

}  // namespace

void add_record(Aggregator& sums, const cupti::Record& record, const RecordsOf& from) {
    const auto* const start = &record;
    const std::int64_t clock_step = from.clock_step;
    std::optional<Activity> activity;
    switch (record.activity) {
        case cupti::kCopyActivity:
            activity = from_copy(*reinterpret_cast<const cupti::Copy*>(start), from.cupti_version,
                                 clock_step);
            break;
        case cupti::kPeerCopyActivity:
            activity = from_peer_copy(*reinterpret_cast<const cupti::PeerCopy*>(start), clock_step);
            break;
        case cupti::kSetActivity:
            activity = from_set(*reinterpret_cast<const cupti::Set*>(start), clock_step);
            break;
        case cupti::kConcurrentKernelActivity:
            activity =
                from_kernel(sums, *reinterpret_cast<const cupti::Kernel*>(start), clock_step);
            break;
        case cupti::kUnifiedMemoryActivity:
            add_managed(sums, *reinterpret_cast<const cupti::UnifiedMemory*>(start));
            break;
        default: break;
    }
    if (activity && activity->start >= from.not_before) sums.add(*activity);
}

}  // namespace waywiser::trace
