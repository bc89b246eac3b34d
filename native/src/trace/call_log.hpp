// The calls that each thread makes, and the library copies, until the tracer's thread collects
// them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "trace/activity.hpp"
#include "trace/api_calls.hpp"
#include "trace/caller.hpp"

namespace waywiser::trace {

// Held for some instructions by a thread that appends, and by the one that collects.
class ShortLock {
public:
    void lock() {
        while (flag_.test_and_set(std::memory_order_acquire)) {
        }
    }
    void unlock() { flag_.clear(std::memory_order_release); }

private:
    std::atomic_flag flag_;
};

// A transfer of the library that has begun, for the copies by which it is made.
struct OpenTransfer {
    LibraryCopy copy;
    std::uintptr_t to = 0, from = 0;  // 0: unknown
};

class OpenTransfers {
public:
    void begin(const OpenTransfer& transfer);
    // None if it began before this process traced.
    std::optional<LibraryCopy> end(std::uint64_t id);
    // The one that a copy between these addresses belongs to; 0: none is open.
    std::uint64_t find(const CopyAddresses& addresses) const;

private:
    mutable std::mutex mutex_;
    std::vector<OpenTransfer> open_;
};

// When a thread sleeps between its calls: it then waits for something that is not CUDA.
class BusyPeriods {
public:
    BusyPeriods();
    // A call begins. Returns the period that has ended before it by a sleep; 0: none has.
    std::uint64_t enter(std::uint64_t now);
    // A call that began then has returned.
    void leave(std::uint64_t began, std::uint64_t now);
    std::uint64_t number() const { return number_; }

private:
    std::uint64_t number_;
    std::uint64_t begin_ = 0, last_ = 0;  // of the period, of the last call's return
    std::uint64_t read_ = 0, cpu_ = 0;    // when the CPU time was read, and what it was
};

// The host addresses that the lines of a thread have copied from or to lately.
class RecentAddresses {
public:
    // Whether the site has used the address, and remembers it.
    bool use(SiteId site, const void* address);

private:
    struct Used {
        SiteId site = kUnknownSite;
        const void* address = nullptr;
    };
    static constexpr std::size_t kKept = 2048;
    std::array<Used, kKept> used_;
};

// Of one thread.
struct ThreadLog {
    explicit ThreadLog(Sites& sites) : callers(sites) {}

    ShortLock lock;
    std::vector<Call> calls;          // that have returned; guarded by `lock`
    std::atomic<bool> ended = false;  // the thread has ended
    std::atomic<std::uint64_t> lost{0};

    // The thread's own from here on.
    CallerCache callers;
    int depth = 0;
    Call current;
    Call last_copy;
    // The last transfer of the library that this thread has begun, and its site.
    std::uint64_t library_transfer = 0;
    SiteId library_site = kUnknownSite;
    std::vector<std::uint16_t> samples;  // copies by site that were counted for samples of pages
    BusyPeriods periods;
    RecentAddresses addresses;
};

// All threads of a process.
class CallLog {
public:
    explicit CallLog(Sites& sites);
    // What the calling thread does. `data`: of CUPTI's callback.
    void enter(std::uint32_t domain, const ApiCall& call, const cupti::CallData& data);
    void leave(const ApiCall& call, const cupti::CallData& data);
    // Takes what has returned since the last time.
    std::vector<Call> take();
    std::uint64_t lost() const { return lost_; }

    ThreadLog& of_this_thread();
    OpenTransfers& open_transfers() { return open_; }
    // Whether this copy of the site is one whose pages are looked at.
    static bool is_sampled(ThreadLog& log, SiteId site);

private:
    void begin(ThreadLog& log, std::uint32_t domain, const ApiCall& call,
               const cupti::CallData& data);
    void append(ThreadLog& log, const Call& call);

    Sites& sites_;
    const std::uint64_t number_;  // no other log of this process has it, nor of its parent
    OpenTransfers open_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<ThreadLog>> threads_;
    std::uint64_t lost_ = 0;
};

}  // namespace waywiser::trace
