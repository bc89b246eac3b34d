// The second with the most exposed time, with what ran in it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace waywiser::trace {

struct TimelineEvent {
    enum Kind : std::uint8_t { Copy, Kernel, Set, Collective };
    Kind kind = Copy;
    std::int32_t gpu = 0;
    std::uint32_t stream = 0;
    std::uint64_t start = 0, end = 0, bytes = 0;
    std::uint32_t index = 0;  // of the group, or of the kernel's name
};

class Timeline {
public:
    struct Second {
        std::uint64_t start = 0, exposed = 0, transfers = 0, kernels = 0;
        bool complete = true;
        std::vector<TimelineEvent> events;
    };

    void add(const TimelineEvent& event);
    void add_exposed(std::uint64_t start, std::uint64_t end);
    // Nothing before `time` comes any more.
    void settle(std::uint64_t time);
    // Null if there was no transfer yet.
    const Second* worst() const { return worst_.start != 0 ? &worst_ : nullptr; }

private:
    Second* second_of(std::uint64_t time);

    std::map<std::uint64_t, Second> open_;
    std::uint64_t settled_ = 0;
    Second worst_;
};

}  // namespace waywiser::trace
