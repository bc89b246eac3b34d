#include "trace/call_table.hpp"

namespace waywiser::trace {
namespace {

constexpr std::uint64_t kSecondsUsed = 5'000'000'000, kSecondsUnused = 60'000'000'000;  // ns
constexpr std::size_t kMostCalls = 1 << 20;

}  // namespace

void CallTable::add(const Call& call) {
    const auto [first, second] = call.correlations;
    if (first == 0) return;
    Entry entry;
    entry.call = call;
    if (!entries_.insert_or_assign(first, entry).second) return;
    if (second != 0 && second != first) other_names_[second] = first;
    in_order_.emplace_back(first, call.end);
    if (entries_.size() > kMostCalls) remove_first();
}

CallTable::Entry* CallTable::find(std::uint32_t correlation) {
    auto found = entries_.find(correlation);
    if (found == entries_.end()) {
        const auto other = other_names_.find(correlation);
        if (other == other_names_.end()) return nullptr;
        found = entries_.find(other->second);
    }
    return found == entries_.end() ? nullptr : &found->second;
}

void CallTable::expire(std::uint64_t now) {
    while (!in_order_.empty()) {
        const auto [number, end] = in_order_.front();
        const auto found = entries_.find(number);
        const bool used = found == entries_.end() || found->second.used;
        if (end + (used ? kSecondsUsed : kSecondsUnused) > now) return;
        remove_first();
    }
}

void CallTable::remove_first() {
    const auto found = entries_.find(in_order_.front().first);
    in_order_.pop_front();
    if (found == entries_.end()) return;
    other_names_.erase(found->second.call.correlations[1]);
    entries_.erase(found);
}

}  // namespace waywiser::trace
