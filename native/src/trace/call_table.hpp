// The calls whose activities may still come, by the number that CUPTI gives both.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "trace/activity.hpp"

namespace waywiser::trace {

class CallTable {
public:
    struct Entry {
        Call call;
        bool used = false;            // an activity of it was seen
        std::uint32_t group = 0;      // of the last one
        std::uint64_t waited_ns = 0;  // before the first one was seen
        std::uint64_t waits = 0;
        std::uint64_t waited_until = 0;
    };

    void add(const Call& call);
    Entry* find(std::uint32_t correlation);
    // Removes what is old: the device may be a minute behind.
    void expire(std::uint64_t now);
    std::size_t size() const { return entries_.size(); }

private:
    void remove_first();

    std::unordered_map<std::uint32_t, Entry> entries_;
    std::unordered_map<std::uint32_t, std::uint32_t> other_names_;
    std::deque<std::pair<std::uint32_t, std::uint64_t>> in_order_;  // number, end of the call
};

}  // namespace waywiser::trace
