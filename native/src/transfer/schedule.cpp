#include "transfer/schedule.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "host/relax.hpp"

namespace waywiser::transfer {
namespace {

// Polling interval for the event that a transfer waits for.
constexpr auto kStartPolling = std::chrono::microseconds(20);

}  // namespace

Schedule::Schedule(const CopyThreads& threads, std::size_t most_threads, std::size_t nodes,
                   double spin_seconds)
    : threads_(threads),
      most_threads_(most_threads),
      nodes_(std::max<std::size_t>(nodes, 1)),
      spin_(std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::duration<double>(spin_seconds))) {}

// --- jobs ------------------------------------------------------------------------------------

// With the lock held, as the next two.
Schedule::Entries::iterator Schedule::find(const Job& job) {
    return std::ranges::find_if(jobs_, [&](const Entry& entry) { return entry.job.get() == &job; });
}

void Schedule::begin(Entry& entry) {
    if (std::exchange(entry.waits, false)) --waiting_;
    entry.job->begin();
    count(entry);
}

// After a change of the entry.
void Schedule::count(Entry& entry) {
    const bool is_so = !entry.waits && !entry.has_no_memory && entry.threads == 0 &&
                       entry.job->useful_threads() > 0;
    if (is_so == entry.is_unserved) return;
    entry.is_unserved = is_so;
    unserved_ += is_so ? 1 : -1;
}

bool Schedule::add(const std::shared_ptr<Job>& job) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) throw Cancelled("the transfer context is closed: create another one");
        Entry& entry = jobs_.emplace_back(Entry{.job = job, .waits = job->waits()});
        if (entry.waits) {
            ++waiting_;
        } else {
            begin(entry);
            if (job->is_over()) return !job->begin_end();
        }
    }
    wake_some();
    return true;
}

std::vector<std::shared_ptr<Job>> Schedule::poll_starts() {
    std::vector<std::shared_ptr<Job>> ending;
    bool some = false;
    {
        const std::lock_guard lock(mutex_);
        for (Entry& entry : jobs_) {
            if (!entry.waits) continue;
            try {
                if (!entry.job->started()) continue;
            } catch (...) {
                entry.job->fail(std::current_exception());
            }
            begin(entry);
            some = true;
            if (entry.job->is_over() && entry.job->begin_end()) ending.push_back(entry.job);
        }
    }
    if (some) wake_some();
    return ending;
}

void Schedule::remove(const Job& job) {
    const std::lock_guard lock(mutex_);
    const auto entry = find(job);
    if (entry == jobs_.end()) return;
    if (entry->waits) --waiting_;
    if (entry->is_unserved) --unserved_;
    jobs_.erase(entry);
}

bool Schedule::cancel(const std::shared_ptr<Job>& job, std::exception_ptr why) {
    bool ends = false;
    {
        const std::lock_guard lock(mutex_);
        const auto entry = find(*job);
        if (entry == jobs_.end() || !job->cancel(std::move(why))) return false;
        if (std::exchange(entry->waits, false)) --waiting_;
        count(*entry);
        // To end it may take until a GPU has copied what it has.
        const bool takes_long = job->has_open_rings() && !has_no_threads();
        ends = entry->threads == 0 && !takes_long && job->begin_end();
    }
    wake_all();
    return ends;
}

std::size_t Schedule::jobs() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
}

// They fail with the lock held: a thread would join one that does not wait any more.
std::vector<std::shared_ptr<Job>> Schedule::close(const std::exception_ptr& why) {
    std::vector<std::shared_ptr<Job>> cancelled;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        for (Entry& entry : jobs_) {
            if (!std::exchange(entry.waits, false)) continue;
            --waiting_;
            entry.job->fail(why);
            if (entry.job->begin_end()) cancelled.push_back(entry.job);
        }
    }
    wake_all();
    return cancelled;
}

std::vector<std::shared_ptr<Job>> Schedule::abandon() {
    std::vector<std::shared_ptr<Job>> left;
    {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        for (const Entry& entry : jobs_) left.push_back(entry.job);
    }
    wake_all();
    return left;
}

// --- work ------------------------------------------------------------------------------------

// With the lock held: whether the thread joins the job.
bool Schedule::may_join(const WorkerState& self, const Entry& entry) const {
    if (entry.waits || entry.has_no_memory) return false;
    if (entry.threads >= entry.job->useful_threads()) return false;
    // Threads of another node help if the job's own node has too few or none.
    const int node = entry.job->node();
    const bool foreign = self.node >= 0 && node >= 0 && self.node != node;
    return !foreign || entry.threads < threads_of_a_node();
}

Schedule::Joined Schedule::join(WorkerState& self, const Job* only) {
    Joined joined;
    std::size_t waking = 0;
    {
        const std::lock_guard lock(mutex_);
        if (abandoned_) return joined;
        const auto found = std::ranges::find_if(jobs_, [&](const Entry& entry) {
            return (only == nullptr || entry.job.get() == only) && may_join(self, entry);
        });
        if (found == jobs_.end()) return joined;
        joined = {.job = found->job, .seat = found->joined++};
        ++found->threads;
        count(*found);
        stop_spinning(self);
        jobs_.splice(jobs_.end(), jobs_, found);
        most_spinning_.store(joined.job->most_threads(), std::memory_order_relaxed);
        if (spins()) self.last_work = std::chrono::steady_clock::now();
        waking = sleepers_to_wake();
    }
    wake(waking);
    return joined;
}

bool Schedule::leave(const WorkerState& self, const Joined& joined, Step step,
                     std::uint64_t generation) {
    const std::lock_guard lock(mutex_);
    const auto entry = find(*joined.job);
    if (entry == jobs_.end()) return false;  // it has ended
    --entry->threads;
    // What was given back since then may be enough.
    if (step == Step::no_memory && generation == this->generation(self)) {
        entry->has_no_memory = true;
    }
    count(*entry);
    if (abandoned_) return false;
    const bool over = step == Step::ends || (entry->threads == 0 && joined.job->is_over());
    return over && joined.job->begin_end();
}

// --- threads ---------------------------------------------------------------------------------

std::size_t Schedule::sleeping() const {
    const std::lock_guard lock(mutex_);
    return sleeping_;
}

// Of the changes that matter to the thread.
std::uint64_t Schedule::generation(const WorkerState& self) const {
    const std::uint64_t work = generation_.load(std::memory_order_acquire);
    return self.caller ? work + caller_generation_.load(std::memory_order_acquire) : work;
}

Schedule::View Schedule::view(const WorkerState& self) const {
    const std::lock_guard lock(mutex_);
    return {.generation = generation(self),
            .starts = waiting_ != 0,
            .ends = stopping_ && helping_ == 0 && jobs_.empty(),
            .abandons = abandoned_};
}

void Schedule::stop_spinning(WorkerState& self) {
    if (std::exchange(self.spinning, false)) --spinning_;
}

// Looks for a change until it is time to sleep. False if there was none. If jobs wait for their
// start, the one thread that polls for them returns after a few looks, to poll again.
bool Schedule::spin(WorkerState& self, std::uint64_t generation, const Job* only,
                    const Deadline& deadline) {
    constexpr int kPollsPerClock = 64;
    const auto is_over = [&] {
        return std::chrono::steady_clock::now() - self.last_work >= spin_ || deadline.is_over();
    };
    if (is_over()) return false;
    // More than can work on a job would only slow down the others.
    if (!self.caller && !self.spinning && spinning_ >= most_spinning_) return false;
    bool polls = false;
    {
        const std::lock_guard lock(mutex_);
        if (this->generation(self) != generation) return true;
        polls = starts_unwatched();
        polling_ = polling_ || polls;
    }
    if (!self.caller && !std::exchange(self.spinning, true)) ++spinning_;
    bool changed = false;
    do {
        for (int i = 0; i < kPollsPerClock && !changed; ++i) {
            changed = this->generation(self) != generation || (only != nullptr && only->done());
            if (!changed) host::relax();
        }
        // With fewer CPUs than threads another one must run.
        if (!changed) std::this_thread::yield();
    } while (!changed && !polls && !is_over());
    if (polls) {
        const std::lock_guard lock(mutex_);
        polling_ = false;
    }
    return changed || polls;
}

void Schedule::sleep(WorkerState& self, std::uint64_t generation, const Job* only,
                     const Deadline& deadline) {
    if (spins() && spin(self, generation, only, deadline)) return;
    stop_spinning(self);
    std::unique_lock<std::mutex> lock(mutex_);
    if (this->generation(self) != generation) return;
    std::condition_variable& change = self.caller ? help_ : work_;
    if (!self.caller) ++sleeping_;
    // Who sleeps looks for work after every wake-up: it may have been meant for another thread.
    if (starts_unwatched()) {  // this thread polls the starts
        polling_ = true;
        change.wait_for(lock, kStartPolling);  // NOLINT(bugprone-spuriously-wake-up-functions)
        polling_ = false;
    } else if (deadline.is_limited()) {
        // NOLINTNEXTLINE(bugprone-spuriously-wake-up-functions)
        change.wait_until(lock, deadline.end());
    } else {
        change.wait(lock);  // NOLINT(bugprone-spuriously-wake-up-functions)
    }
    ++wake_ups_;
    if (!self.caller) {
        --sleeping_;
        if (woken_ > 0) --woken_;
    }
}

bool Schedule::begin_help() {
    const std::lock_guard lock(mutex_);
    // Where threads stay awake, a caller that slept instead would lose what they gain.
    const bool enough = helping_ > 0 || (threads_.size() >= most_threads_ && !spins());
    if (enough && !has_no_threads()) return false;
    ++helping_;
    return true;
}

void Schedule::stop_working(WorkerState& self) {
    stop_spinning(self);
    bool left = false;
    bool stopping = false;
    {
        const std::lock_guard lock(mutex_);
        left = unserved_ != 0 || starts_unwatched();
        if (self.caller) --helping_;
        stopping = stopping_;
    }
    if (stopping) {
        wake_all();
    } else if (left) {
        wake_some();
    }
}

void Schedule::wake_all() {
    {
        const std::lock_guard lock(mutex_);
        ++generation_;
        woken_ = sleeping_;
        for (Entry& entry : jobs_) {
            if (std::exchange(entry.has_no_memory, false)) count(entry);
        }
    }
    work_.notify_all();
    help_.notify_all();
}

void Schedule::wake_some() {
    if (has_no_threads()) return wake_all();  // callers that work
    std::size_t waking = 0;
    {
        const std::lock_guard lock(mutex_);
        ++generation_;
        waking = sleepers_to_wake();
    }
    wake(waking);
}

void Schedule::notify_callers() {
    bool stopping = false;
    {
        const std::lock_guard lock(mutex_);
        ++caller_generation_;
        stopping = stopping_;
        if (stopping) ++generation_;
    }
    help_.notify_all();
    if (stopping) work_.notify_all();  // they may end now
}

void Schedule::wake(std::size_t threads) {
    for (; threads > 0; --threads) work_.notify_one();
}

// With the lock held.
std::size_t Schedule::threads_of_a_node() const {
    return std::max<std::size_t>(threads_.size() / nodes_, 1);
}

// With the lock held: the number of threads that are likely to find work now, if these are not
// enough.
std::size_t Schedule::useful_threads(std::size_t enough) const {
    std::size_t useful = starts_unwatched() ? 1 : 0;
    for (const Entry& entry : jobs_) {
        if (useful >= enough) break;
        if (entry.waits || entry.has_no_memory) continue;
        std::size_t most = entry.job->useful_threads();
        if (entry.job->node() >= 0 && nodes_ > 1) most = std::min(most, threads_of_a_node());
        useful += most - std::min(most, entry.threads);
    }
    return useful;
}

// With the lock held: the number of threads to wake now. A few, each of which wakes more if it
// finds more work, since waking a thread takes its waker several microseconds. No more than are
// likely to find work.
std::size_t Schedule::sleepers_to_wake() {
    constexpr std::size_t kAtOnce = 3;
    const std::size_t asleep = sleeping_ - std::min(sleeping_, woken_);
    if (asleep == 0) return 0;
    const std::size_t coming = woken_ + spinning_;  // they find it without being woken
    const std::size_t useful = useful_threads(coming + kAtOnce);
    const std::size_t waking = std::min({kAtOnce, asleep, useful - std::min(useful, coming)});
    woken_ += waking;
    if (waking > 0) ++generation_;
    return waking;
}

}  // namespace waywiser::transfer
