// Sums of calls and activities by group, in bounded memory. Activities come in any order; those
// that are old enough are settled in the order of time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/activity.hpp"
#include "trace/call_table.hpp"
#include "trace/sweep.hpp"
#include "trace/timeline.hpp"

namespace waywiser::trace {

struct Group {
    GroupKey key;
    std::uint64_t copies = 0, calls = 0, bytes = 0, least_bytes = ~0ull, most_bytes = 0;
    std::uint64_t traced_calls = 0;  // those of which the tracer saw the call itself
    std::uint64_t device_ns = 0, call_ns = 0, exposed_ns = 0, alone_ns = 0,
                  during_collective_ns = 0, lost_ns = 0;
    std::uint64_t asynchronous = 0, waited = 0, wait_ns = 0;
    std::uint64_t slept_after = 0;  // calls in periods that a sleep of the thread has ended
    std::uint64_t sleeps = 0;       // such periods
    std::uint64_t addressed = 0, repeated = 0;  // calls
    std::map<int, std::uint64_t> nodes;         // pages sampled
    std::uint64_t new_pages = 0, sampled_pages = 0;
};

struct CallSums {
    std::uint64_t calls = 0, nanoseconds = 0, bytes = 0;
};

struct GpuSums {
    std::uint64_t kernels = 0;
    Sweep sweep;
};

class Aggregator {
public:
    void add(const Activity& activity);
    void add(const Call& call);
    void add(const LibraryCopy& copy);  // once when it is called and once when it has ended
    void add(const Managed& managed);
    // The number of a kernel's name.
    std::uint32_t kernel_name(const char* name);
    void settle(std::uint64_t until);
    void settle_all() { settle(~0ull); }

    // Whether anything was added since the last call of this.
    bool take_changed() { return std::exchange(changed_, false); }
    const std::vector<Group>& groups() const { return groups_; }
    const std::map<std::pair<SiteId, CallKind>, CallSums>& memory_calls() const { return memory_; }
    const std::map<SiteId, CallSums>& waits() const { return waits_; }
    const std::map<std::pair<int, Managed::What>, Managed>& managed() const { return managed_; }
    const std::map<int, GpuSums>& gpus() const { return gpus_; }
    const Timeline& timeline() const { return timeline_; }
    const std::vector<std::string>& kernel_names() const { return kernel_names_; }
    static bool is_collective(const std::string& kernel_name);
    // Activities and calls that it holds.
    std::size_t size() const { return pending_.size() + calls_.size(); }

private:
    struct LibraryEntry {
        std::uint32_t group = 0;
        std::uint64_t ended = 0;
    };

    // What a thread calls until it sleeps.
    struct PeriodCalls {
        bool slept = false;
        std::map<std::uint32_t, std::uint64_t> calls;  // by group
    };

    void settle_one(const Activity& activity);
    void settle_transfer(const Activity& activity);
    std::uint32_t group_of(const Activity& activity, CallTable::Entry* entry);
    std::uint32_t group_number(GroupKey key);
    void use_call(Group& group, std::uint32_t number, CallTable::Entry& entry);
    void count_in_period(Group& group, std::uint32_t number, std::uint64_t period);
    void add_wait(const Call& call);
    void end_period(const Call& call);
    // The time in which the program waits for a copy: in its call, and in the wait that follows.
    void add_held(const Activity& activity, std::uint32_t number, const CallTable::Entry& entry);
    void forget_library_copies(std::uint64_t before);

    std::vector<Activity> pending_;
    CallTable calls_;
    std::vector<Group> groups_;
    std::map<GroupKey, std::uint32_t> group_numbers_;
    std::map<std::pair<SiteId, CallKind>, CallSums> memory_;
    std::map<SiteId, CallSums> waits_;
    std::map<std::pair<int, Managed::What>, Managed> managed_;
    std::map<int, GpuSums> gpus_;
    std::unordered_map<std::uint64_t, LibraryEntry> library_;
    std::unordered_map<std::uint64_t, PeriodCalls> periods_;
    std::deque<std::uint64_t> ended_periods_;
    Timeline timeline_;
    std::vector<std::string> kernel_names_;
    std::unordered_map<std::string, std::uint32_t> kernel_numbers_;
    bool changed_ = false;
};

// The size class of a copy.
std::uint8_t bytes_log2(std::uint64_t bytes);
void add_pages(Group& group, const PageSample& sample);

}  // namespace waywiser::trace
