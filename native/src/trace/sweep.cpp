#include "trace/sweep.hpp"

#include <algorithm>

namespace waywiser::trace {
namespace {

constexpr std::uint64_t kRemembered = 10'000'000'000;  // ns
constexpr std::size_t kMostBusy = 1 << 18;

bool is_kernel(Interval::What what) {
    return what == Interval::What::Kernel || what == Interval::What::Collective;
}

}  // namespace

std::vector<Sweep::Edge> Sweep::edges_before(std::uint64_t time) {
    std::vector<Edge> edges;
    std::vector<Interval> later;
    for (const Interval& each : intervals_) {
        const std::uint64_t start = std::max(each.start, swept_), end = std::min(each.end, time);
        if (start < end) {
            edges.push_back({start, 1, each.what, each.group});
            edges.push_back({end, -1, each.what, each.group});
        }
        if (each.end > time) later.push_back(each);
    }
    intervals_ = std::move(later);
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return a.time < b.time; });
    return edges;
}

void Sweep::sweep_to(std::uint64_t time, const OnShare& on_share, const OnExposed& on_exposed) {
    if (time <= swept_) return;
    std::stable_partition(intervals_.begin(), intervals_.end(),
                          [](const Interval& each) { return is_kernel(each.what); });
    for (Interval& each : intervals_) {
        if (each.start >= swept_) continue;
        add_late(each, on_share, on_exposed);
        each.start = std::min(each.end, swept_);
    }
    std::uint64_t last = 0;
    for (const Edge& edge : edges_before(time)) {
        if (edge.time > last) account(last, edge.time, on_share, on_exposed);
        last = edge.time;
        apply(edge);
    }
    swept_ = time;
    // What goes on is given an edge again by the next call.
    for (Interval& each : intervals_) each.start = std::max(each.start, swept_);
    forget_busy(time);
}

void Sweep::apply(const Edge& edge) {
    if (is_kernel(edge.what)) {
        kernels_ += edge.step;
        if (edge.what == Interval::What::Collective) collectives_ += edge.step;
        return;
    }
    auto found = std::find_if(active_.begin(), active_.end(),
                              [&](const Active& each) { return each.group == edge.group; });
    if (found == active_.end()) found = active_.insert(active_.end(), {edge.group});
    switch (edge.what) {
        case Interval::What::Set: found->sets += edge.step; break;
        case Interval::What::Call: found->calls += edge.step; break;
        default: found->copies += edge.step;
    }
    if (found->sets == 0 && found->copies == 0 && found->calls == 0) active_.erase(found);
}

void Sweep::account(std::uint64_t start, std::uint64_t end, const OnShare& on_share,
                    const OnExposed& on_exposed) {
    const std::uint64_t length = end - start;
    if (kernels_ > 0) {
        totals_.kernel += length;
        add_busy(start, end);
    }
    if (collectives_ > 0) totals_.collective += length;
    const auto copying = std::count_if(active_.begin(), active_.end(),
                                       [](const Active& each) { return each.copies > 0; });
    const bool exposed = kernels_ == 0;
    if (copying > 0) {
        totals_.copy += length;
        if (exposed) {
            totals_.exposed += length;
            on_exposed(start, end);
        }
    }
    bool lost = false;
    for (const Active& each : active_) {
        const bool others = copying > (each.copies > 0 ? 1 : 0);
        const bool moving = each.copies > 0 || each.sets > 0;
        const bool lost_here = exposed && (each.copies > 0 || (each.calls > 0 && !others));
        lost |= lost_here;
        GroupShare share{.group = each.group, .lost = lost_here ? length : 0};
        if (moving) {
            share.exposed = exposed ? length : 0;
            share.alone = exposed && !others ? length : 0;
            share.during_collective = collectives_ > 0 ? length : 0;
        }
        on_share(share);
    }
    if (lost) totals_.lost += length;
}

void Sweep::add_late(const Interval& interval, const OnShare& on_share,
                     const OnExposed& on_exposed) {
    const std::uint64_t start = interval.start, end = std::min(interval.end, swept_);
    if (start >= end) return;
    const std::uint64_t uncovered = end - start - covered(start, end);
    if (is_kernel(interval.what)) {
        totals_.kernel += uncovered;
        if (interval.what == Interval::What::Collective) totals_.collective += end - start;
        add_busy(start, end);
        return;
    }
    if (interval.what == Interval::What::Call) return;  // its copy counts
    const bool copies = interval.what == Interval::What::Transfer;
    if (copies) {
        totals_.copy += end - start;
        totals_.exposed += uncovered;
        totals_.lost += uncovered;
        if (uncovered == end - start) on_exposed(start, end);
    }
    on_share({.group = interval.group, .exposed = uncovered, .lost = copies ? uncovered : 0});
}

void Sweep::add_busy(std::uint64_t start, std::uint64_t end) {
    if (busy_.empty() || start > busy_.back().second) {
        busy_.emplace_back(start, end);
        return;
    }
    auto first =
        std::lower_bound(busy_.begin(), busy_.end(), start,
                         [](const Span& each, std::uint64_t time) { return each.second < time; });
    auto last = first;
    for (; last != busy_.end() && last->first <= end; ++last) {
        start = std::min(start, last->first);
        end = std::max(end, last->second);
    }
    first = busy_.erase(first, last);
    busy_.insert(first, {start, end});
}

std::uint64_t Sweep::covered(std::uint64_t start, std::uint64_t end) const {
    std::uint64_t sum = 0;
    auto each =
        std::lower_bound(busy_.begin(), busy_.end(), start,
                         [](const Span& span, std::uint64_t time) { return span.second <= time; });
    for (; each != busy_.end() && each->first < end; ++each)
        sum += std::min(end, each->second) - std::max(start, each->first);
    return sum;
}

void Sweep::forget_busy(std::uint64_t before) {
    const std::uint64_t oldest = before > kRemembered ? before - kRemembered : 0;
    auto keep = std::find_if(busy_.begin(), busy_.end(),
                             [&](const Span& each) { return each.second >= oldest; });
    if (busy_.size() > kMostBusy)
        keep = std::max(keep, busy_.end() - static_cast<std::ptrdiff_t>(kMostBusy / 2));
    busy_.erase(busy_.begin(), keep);
}

}  // namespace waywiser::trace
