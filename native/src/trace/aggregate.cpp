#include "trace/aggregate.hpp"

#include <algorithm>
#include <bit>

namespace waywiser::trace {
namespace {

constexpr std::size_t kMostGroups = 20'000, kMostPending = 1 << 21, kMostNames = 4096,
                      kMostPeriods = 1 << 14;
constexpr std::uint64_t kLibraryKept = 10'000'000'000;  // ns

}  // namespace

std::uint8_t bytes_log2(std::uint64_t bytes) {
    return bytes == 0 ? 0 : static_cast<std::uint8_t>(std::bit_width(bytes) - 1);
}

void add_pages(Group& group, const PageSample& sample) {
    group.sampled_pages += sample.sampled;
    group.new_pages += sample.absent;
    for (std::size_t i = 0; i < PageSample::kNodes; ++i) {
        if (sample.pages[i] != 0) group.nodes[sample.nodes[i]] += sample.pages[i];
    }
}

bool Aggregator::is_collective(const std::string& kernel_name) {
    return kernel_name.find("ncclDevKernel") != std::string::npos ||
           kernel_name.find("ncclKernel") != std::string::npos;
}

std::uint32_t Aggregator::kernel_name(const char* name) {
    if (name == nullptr) name = "";
    const std::string text(name);
    const auto found = kernel_numbers_.find(text);
    if (found != kernel_numbers_.end()) return found->second;
    const bool full = kernel_names_.size() >= kMostNames;
    const std::string kept = full ? (is_collective(text) ? "ncclDevKernel" : "") : text;
    if (full && kernel_numbers_.contains(kept)) return kernel_numbers_[kept];
    kernel_names_.push_back(kept);
    return kernel_numbers_[kept] = static_cast<std::uint32_t>(kernel_names_.size() - 1);
}

void Aggregator::add(const Activity& activity) {
    changed_ = true;
    pending_.push_back(activity);
    if (pending_.size() < kMostPending) return;
    // Too many in two seconds: the older half is settled early.
    std::vector<std::uint64_t> starts;
    starts.reserve(pending_.size());
    for (const Activity& each : pending_) starts.push_back(each.start);
    const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
    std::nth_element(starts.begin(), middle, starts.end());
    settle(*middle + 1);
}

void Aggregator::add(const Call& call) {
    changed_ = true;
    switch (call.kind) {
        case CallKind::Copy: calls_.add(call); break;
        case CallKind::Wait: add_wait(call); break;
        case CallKind::PeriodEnd: end_period(call); break;
        default:
            CallSums& sums = memory_[{call.site, call.kind}];
            ++sums.calls;
            sums.nanoseconds += call.end - call.begin;
            sums.bytes += call.bytes;
    }
}

void Aggregator::add_wait(const Call& call) {
    CallSums& sums = waits_[call.site];
    ++sums.calls;
    sums.nanoseconds += call.end - call.begin;
    if (call.waited_for == 0) return;
    CallTable::Entry* const entry = calls_.find(call.waited_for);
    if (entry == nullptr) return;
    if (entry->used) {
        ++groups_[entry->group].waited;
        groups_[entry->group].wait_ns += call.end - call.begin;
    } else {
        ++entry->waits;
        entry->waited_ns += call.end - call.begin;
        entry->waited_until = std::max(entry->waited_until, call.end);
    }
}

void Aggregator::end_period(const Call& call) {
    const std::uint64_t period = call.period;
    if (!call.slept && !periods_.contains(period)) return;
    PeriodCalls& ended = periods_[period];
    ended.slept = call.slept;
    if (ended.slept) {
        for (const auto& [group, calls] : ended.calls) {
            groups_[group].slept_after += calls;
            ++groups_[group].sleeps;
        }
    }
    // Records of its calls may still come.
    ended_periods_.push_back(period);
    if (ended_periods_.size() <= kMostPeriods) return;
    periods_.erase(ended_periods_.front());
    ended_periods_.pop_front();
}

void Aggregator::add(const Managed& managed) {
    changed_ = true;
    Managed& sums = managed_[{managed.gpu, managed.what}];
    sums.gpu = managed.gpu;
    sums.what = managed.what;
    sums.count += managed.count;
    sums.bytes += managed.bytes;
    sums.nanoseconds += managed.nanoseconds;
}

void Aggregator::add(const LibraryCopy& copy) {
    changed_ = true;
    auto found = library_.find(copy.id);
    if (found == library_.end())
        found = library_.emplace(copy.id, LibraryEntry{group_number(copy.key), 0}).first;
    if (copy.ended == 0) return;
    found->second.ended = copy.ended;
    Group& group = groups_[found->second.group];
    ++group.copies;
    ++group.calls;
    ++group.traced_calls;
    group.bytes += copy.bytes;
    group.least_bytes = std::min(group.least_bytes, copy.bytes);
    group.most_bytes = std::max(group.most_bytes, copy.bytes);
    group.call_ns += copy.call_nanoseconds;
    group.asynchronous += copy.asynchronous ? 1 : 0;
    add_pages(group, copy.pages);
}

void Aggregator::forget_library_copies(std::uint64_t before) {
    std::erase_if(library_, [&](const auto& each) {
        return each.second.ended != 0 && each.second.ended + kLibraryKept < before;
    });
}

std::uint32_t Aggregator::group_number(GroupKey key) {
    if (groups_.size() >= kMostGroups && !group_numbers_.contains(key)) key.site = kUnknownSite;
    const auto [found, added] =
        group_numbers_.emplace(key, static_cast<std::uint32_t>(groups_.size()));
    if (added) groups_.emplace_back().key = key;
    return found->second;
}

std::uint32_t Aggregator::group_of(const Activity& activity, CallTable::Entry* entry) {
    if (entry != nullptr && entry->call.library_transfer != 0) {
        const auto found = library_.find(entry->call.library_transfer);
        if (found != library_.end()) return found->second.group;
    }
    return group_number({.site = entry != nullptr ? entry->call.site : kUnknownSite,
                         .operation = activity.operation,
                         .direction = activity.direction,
                         .graph = activity.graph,
                         .from = activity.from,
                         .to = activity.to,
                         .bytes_log2 = bytes_log2(activity.bytes / activity.count)});
}

void Aggregator::use_call(Group& group, std::uint32_t number, CallTable::Entry& entry) {
    if (!entry.used || entry.group != number) {
        ++group.calls;
        group.asynchronous += entry.call.asynchronous ? 1 : 0;
    }
    if (!entry.used) {
        ++group.traced_calls;
        group.call_ns += entry.call.end - entry.call.begin;
        group.waited += entry.waits;
        group.wait_ns += entry.waited_ns;
        add_pages(group, entry.call.pages);
        group.addressed += entry.call.addressed ? 1 : 0;
        group.repeated += entry.call.repeated ? 1 : 0;
        count_in_period(group, number, entry.call.period);
    }
    entry.used = true;
    entry.group = number;
}

void Aggregator::count_in_period(Group& group, std::uint32_t number, std::uint64_t period) {
    // Threads that never sleep keep theirs. There is a limit, for a program may start many.
    if (period == 0 || (periods_.size() >= 2 * kMostPeriods && !periods_.contains(period))) return;
    PeriodCalls& known = periods_[period];
    const bool first = known.calls[number]++ == 0;
    if (!known.slept) return;
    ++group.slept_after;
    group.sleeps += first ? 1 : 0;
}

void Aggregator::add_held(const Activity& activity, std::uint32_t number,
                          const CallTable::Entry& entry) {
    // The call moves pageable memory itself, whatever its name.
    const bool pageable =
        activity.from.kind == Kind::Pageable || activity.to.kind == Kind::Pageable;
    const bool waits = !entry.call.asynchronous || entry.waits > 0 || pageable;
    if (entry.used || !waits || activity.operation == Operation::Set) return;
    gpus_[activity.gpu].sweep.add({entry.call.begin, std::max(entry.call.end, entry.waited_until),
                                   Interval::What::Call, number});
}

void Aggregator::settle_transfer(const Activity& activity) {
    CallTable::Entry* const entry = calls_.find(activity.correlation);
    const std::uint32_t number = group_of(activity, entry);
    Group& group = groups_[number];
    group.device_ns += activity.end - activity.start;
    if (group.key.operation == Operation::LibraryCopy) {
        entry->used = true;
    } else {
        const std::uint64_t each = activity.bytes / activity.count;
        group.copies += activity.count;
        group.bytes += activity.bytes;
        group.least_bytes = std::min(group.least_bytes, each);
        group.most_bytes = std::max(group.most_bytes, each);
        if (entry != nullptr) {
            add_held(activity, number, *entry);
            use_call(group, number, *entry);
        } else {
            ++group.calls;
            group.asynchronous += activity.asynchronous ? 1 : 0;
        }
    }
    const bool set = activity.operation == Operation::Set;
    gpus_[activity.gpu].sweep.add({activity.start, activity.end,
                                   set ? Interval::What::Set : Interval::What::Transfer, number});
    timeline_.add({set ? TimelineEvent::Set : TimelineEvent::Copy, activity.gpu, activity.stream,
                   activity.start, activity.end, activity.bytes, number});
}

void Aggregator::settle_one(const Activity& activity) {
    if (activity.what == Activity::What::Transfer) {
        settle_transfer(activity);
        return;
    }
    const bool collective = activity.what == Activity::What::Collective;
    GpuSums& gpu = gpus_[activity.gpu];
    ++gpu.kernels;
    gpu.sweep.add({activity.start, activity.end,
                   collective ? Interval::What::Collective : Interval::What::Kernel, 0});
    timeline_.add({collective ? TimelineEvent::Collective : TimelineEvent::Kernel, activity.gpu,
                   activity.stream, activity.start, activity.end, 0, activity.name});
}

void Aggregator::settle(std::uint64_t until) {
    const auto settled = std::partition(pending_.begin(), pending_.end(),
                                        [&](const Activity& a) { return a.start < until; });
    std::sort(pending_.begin(), settled,
              [](const Activity& a, const Activity& b) { return a.start < b.start; });
    changed_ |= settled != pending_.begin();
    std::for_each(pending_.begin(), settled, [this](const Activity& a) { settle_one(a); });
    pending_.erase(pending_.begin(), settled);
    const Sweep::OnShare on_share = [this](const GroupShare& share) {
        Group& group = groups_[share.group];
        group.exposed_ns += share.exposed;
        group.alone_ns += share.alone;
        group.during_collective_ns += share.during_collective;
        group.lost_ns += share.lost;
    };
    const Sweep::OnExposed on_exposed = [this](std::uint64_t start, std::uint64_t end) {
        timeline_.add_exposed(start, end);
    };
    for (auto& [number, gpu] : gpus_) gpu.sweep.sweep_to(until, on_share, on_exposed);
    timeline_.settle(until);
    calls_.expire(until);
    forget_library_copies(until);
}

}  // namespace waywiser::trace
