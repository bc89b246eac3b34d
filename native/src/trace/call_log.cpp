#include "trace/call_log.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "trace/clock.hpp"
#include "trace/pages.hpp"

namespace waywiser::trace {
namespace {

constexpr std::size_t kMostCallsOfAThread = 1 << 18;
constexpr std::uint64_t kAtOnce =
    20'000;  // ns from a copy to a wait for it, whatever other threads call
constexpr std::uint16_t kFirstSamples = 8, kSampleEvery = 32;

// A sleep counts that is so long, and this share of the busy time before it.
constexpr std::uint64_t kLeastSleep = 100'000;  // ns
constexpr double kLeastSleepShare = 0.02;

std::atomic<std::uint64_t> last_log{0}, last_period{0};

// What a thread has of the log. A forked child has another log, and forgets the one of its parent.
struct OwnLog {
    std::uint64_t of;  // its number
    ThreadLog* log;
};
thread_local constinit OwnLog own_log{0, nullptr};
thread_local constinit bool own_end = false;

// The last that a thread does of its own. Its calls may be later: then it has a log again.
struct EndOfThread {
    std::shared_ptr<ThreadLog> log;
    ~EndOfThread() {
        own_log = {0, nullptr};
        own_end = true;
        if (log) log->ended = true;
    }
};

void end_with_thread(const std::shared_ptr<ThreadLog>& log) {
    thread_local EndOfThread end;
    if (!own_end) end.log = log;
}

bool contains(std::uintptr_t begin, std::uint64_t bytes, const void* address) {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return begin != 0 && value >= begin && value - begin < bytes;
}

// Whether a wait that is called now waits for the copy before it. CUPTI numbers the calls of all
// threads one after the other, also those that are not observed.
bool follows_at_once(const ThreadLog& log, std::uint32_t correlation) {
    const Call& copy = log.last_copy;
    if (copy.correlations[0] == 0 || copy.library_transfer != 0) return false;
    const std::uint32_t last = std::max(copy.correlations[0], copy.correlations[1]);
    return correlation == last + 1 || copy.end + kAtOnce >= monotonic_now();
}

bool succeeded(const cupti::CallData& data) {
    return data.returned == nullptr || *static_cast<const std::int32_t*>(data.returned) == 0;
}

}  // namespace

BusyPeriods::BusyPeriods() : number_(++last_period) {}

std::uint64_t BusyPeriods::enter(std::uint64_t now) {
    if (begin_ == 0) begin_ = last_ = read_ = now, cpu_ = thread_cpu_now();
    if (now < last_ + kLeastSleep) return 0;
    const std::uint64_t cpu = thread_cpu_now(), ran = cpu - cpu_, passed = now - read_;
    // It may have slept in short calls too, which is no sleep between calls.
    const std::uint64_t slept = std::min(passed > ran ? passed - ran : 0, now - last_);
    const auto busy = static_cast<double>(last_ - begin_);
    read_ = now;
    cpu_ = cpu;
    if (slept < kLeastSleep || static_cast<double>(slept) < kLeastSleepShare * busy) return 0;
    begin_ = now;
    return std::exchange(number_, ++last_period);
}

void BusyPeriods::leave(std::uint64_t began, std::uint64_t now) {
    last_ = now;
    if (now < began + kLeastSleep) return;
    // It may have slept in the call, which is no sleep between calls.
    read_ = now;
    cpu_ = thread_cpu_now();
}

bool RecentAddresses::use(SiteId site, const void* address) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
    static_assert(std::has_single_bit(kKept));
    const std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(address) + site) * kGolden;
    Used& used = used_[mixed >> (64 - std::countr_zero(kKept))];
    if (used.site == site && used.address == address) return true;
    used = {site, address};
    return false;
}

void OpenTransfers::begin(const OpenTransfer& transfer) {
    const std::lock_guard lock(mutex_);
    open_.push_back(transfer);
}

std::optional<LibraryCopy> OpenTransfers::end(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](const OpenTransfer& each) { return each.copy.id == id; });
    if (found == open_.end()) return std::nullopt;
    const LibraryCopy copy = found->copy;
    open_.erase(found);
    return copy;
}

std::uint64_t OpenTransfers::find(const CopyAddresses& addresses) const {
    const std::lock_guard lock(mutex_);
    for (const OpenTransfer& each : open_) {
        if (contains(each.to, each.copy.bytes, addresses.to) ||
            contains(each.from, each.copy.bytes, addresses.from))
            return each.copy.id;
    }
    return open_.empty() ? 0 : open_.front().copy.id;
}

CallLog::CallLog(Sites& sites) : sites_(sites), number_(++last_log) {}

ThreadLog& CallLog::of_this_thread() {
    if (own_log.of != number_) {
        const auto log = std::make_shared<ThreadLog>(sites_);
        end_with_thread(log);
        own_log = {number_, log.get()};
        const std::lock_guard lock(mutex_);
        threads_.push_back(log);
    }
    return *own_log.log;
}

bool CallLog::is_sampled(ThreadLog& log, SiteId site) {
    if (log.samples.size() <= site) log.samples.resize(site + 1);
    std::uint16_t& count = log.samples[site];
    if (count < kFirstSamples) return ++count != 0;
    if (++count < kFirstSamples + kSampleEvery) return false;
    count = kFirstSamples;
    return true;
}

void CallLog::begin(ThreadLog& log, std::uint32_t domain, const ApiCall& call,
                    const cupti::CallData& data) {
    const bool follows = call.kind == CallKind::Wait && follows_at_once(log, data.correlation);
    Call& now = log.current;
    now = Call{.kind = call.kind, .asynchronous = call.asynchronous};
    now.correlations[0] = data.correlation;
    const Caller caller = log.callers.find(domain == cupti::kRuntimeApi);
    now.site = caller.site;
    if (call.kind == CallKind::Copy) {
        // A Python line that has called the library may copy without it too.
        const bool maybe = log.library_transfer != 0 && caller.site == log.library_site;
        if (caller.library || (maybe && log.callers.in_library())) {
            now.library_transfer = maybe && !caller.library
                                       ? log.library_transfer
                                       : open_.find(copy_addresses(call, data.parameters));
        }
        const HostRange range = host_range(call, data.parameters);
        if (now.library_transfer == 0 && range.data != nullptr) {
            now.addressed = true;
            now.repeated = log.addresses.use(now.site, range.data);
            if (is_sampled(log, now.site)) now.pages = sample_pages(range.data, range.bytes);
        }
    } else if (call.kind == CallKind::Wait) {
        if (follows) now.waited_for = log.last_copy.correlations[0];
    } else if (call.kind == CallKind::PinAllocate || call.kind == CallKind::PinRegister) {
        now.bytes = pinned_bytes(data.parameters);
    }
    now.begin = monotonic_now();
    if (const std::uint64_t period = log.periods.enter(now.begin); period != 0)
        append(log, Call{.kind = CallKind::PeriodEnd, .period = period, .slept = true});
    now.period = log.periods.number();
}

void CallLog::enter(std::uint32_t domain, const ApiCall& call, const cupti::CallData& data) {
    ThreadLog& log = of_this_thread();
    if (log.depth++ == 0) {
        begin(log, domain, call, data);
    } else if (data.correlation != log.current.correlations[0] &&
               log.current.correlations[1] == 0) {
        log.current.correlations[1] = data.correlation;
    }
}

void CallLog::leave(const ApiCall& call, const cupti::CallData& data) {
    ThreadLog& log = of_this_thread();
    if (log.depth == 0) return;
    --log.depth;
    if (log.depth != 0) return;
    Call& now = log.current;
    if (now.kind != call.kind || now.begin == 0) return;  // began before the callbacks were enabled
    now.end = monotonic_now();
    log.periods.leave(now.begin, now.end);
    if (!succeeded(data)) return;
    if (now.kind == CallKind::Copy) log.last_copy = now;
    append(log, now);
    if (now.kind != CallKind::Copy) log.last_copy = Call{};
}

void CallLog::append(ThreadLog& log, const Call& call) {
    const std::lock_guard lock(log.lock);
    if (log.calls.size() >= kMostCallsOfAThread) {
        ++log.lost;
        return;
    }
    log.calls.push_back(call);
}

std::vector<Call> CallLog::take() {
    std::vector<Call> all, taken;
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<ThreadLog>> going_on;
    for (const auto& log : threads_) {
        // A thread that ends after this is taken from once more.
        const bool ended = log->ended.load();
        if (!ended) going_on.push_back(log);
        {
            const std::lock_guard short_lock(log->lock);
            taken.swap(log->calls);
        }
        all.insert(all.end(), taken.begin(), taken.end());
        taken.clear();
        if (ended) all.push_back({.kind = CallKind::PeriodEnd, .period = log->periods.number()});
        lost_ += log->lost.exchange(0);
    }
    threads_ = std::move(going_on);
    return all;
}

}  // namespace waywiser::trace
