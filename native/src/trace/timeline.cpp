#include "trace/timeline.hpp"

#include <algorithm>
#include <utility>

namespace waywiser::trace {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kMostEventsOfAKind = 4000, kMostOpen = 16;

bool is_worse(const Timeline::Second& one, const Timeline::Second& other) {
    return std::pair(one.exposed, one.transfers) > std::pair(other.exposed, other.transfers);
}

}  // namespace

Timeline::Second* Timeline::second_of(std::uint64_t time) {
    const std::uint64_t number = time / kSecond;
    if (number * kSecond < settled_) return nullptr;
    if (open_.size() >= kMostOpen && !open_.contains(number)) return nullptr;
    Second& second = open_[number];
    second.start = number * kSecond;
    return &second;
}

void Timeline::add(const TimelineEvent& event) {
    Second* const second = second_of(event.start);
    if (second == nullptr) return;
    const bool kernel =
        event.kind == TimelineEvent::Kernel || event.kind == TimelineEvent::Collective;
    std::uint64_t& count = kernel ? second->kernels : second->transfers;
    if (count++ < kMostEventsOfAKind) {
        second->events.push_back(event);
    } else {
        second->complete = false;
    }
}

void Timeline::add_exposed(std::uint64_t start, std::uint64_t end) {
    while (start < end) {
        const std::uint64_t until = std::min(end, (start / kSecond + 1) * kSecond);
        if (Second* const second = second_of(start)) second->exposed += until - start;
        start = until;
    }
}

void Timeline::settle(std::uint64_t time) {
    settled_ = std::max(settled_, time / kSecond * kSecond);
    while (!open_.empty()) {
        const auto first = open_.begin();
        if ((first->first + 1) * kSecond > time) break;
        if (is_worse(first->second, worst_)) worst_ = std::move(first->second);
        open_.erase(first);
    }
}

}  // namespace waywiser::trace
