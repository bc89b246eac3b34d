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

bool Schedule::add(const std::shared_ptr<Job>& job) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) throw Cancelled("the transfer context is closed: create another one");
        jobs_.push_back(job);
        if (job->supply().waits()) {
            waiting_.push_back(job);
        } else {
            job->begin();
            if (job->supply().exhausted()) return !job->supply().begin_completion();
            ready_.push_back(job);
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
        std::erase_if(waiting_, [&](const std::shared_ptr<Job>& job) {
            try {
                if (!job->supply().started()) return false;
            } catch (...) {
                job->fail(std::current_exception());
            }
            job->begin();
            if (job->supply().exhausted()) {
                if (job->supply().begin_completion()) ending.push_back(job);
            } else {
                ready_.push_back(job);
                some = true;
            }
            return true;
        });
    }
    if (some) wake_some();
    return ending;
}

void Schedule::remove(const Job& job) {
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_, [&](const auto& one) { return one.get() == &job; });
}

bool Schedule::cancel(const std::shared_ptr<Job>& job, std::exception_ptr why) {
    bool completes = false;
    {
        const std::lock_guard lock(mutex_);
        if (std::ranges::find(jobs_, job) == jobs_.end()) return false;  // it has ended
        if (!job->cancel(std::move(why))) return false;
        std::erase(waiting_, job);
        ChunkSupply& supply = job->supply();
        if (supply.exhausted()) std::erase(ready_, job);
        completes = supply.all_completed() && supply.begin_completion();
    }
    wake_all();  // a chunk that waits for staging memory needs none now
    return completes;
}

std::size_t Schedule::jobs() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
}

std::list<std::shared_ptr<Job>> Schedule::close() {
    std::list<std::shared_ptr<Job>> cancelled;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        cancelled.swap(waiting_);
        std::erase_if(cancelled, [](const auto& job) { return !job->supply().begin_completion(); });
    }
    wake_all();
    return cancelled;
}

std::vector<std::shared_ptr<Job>> Schedule::abandon() {
    std::vector<std::shared_ptr<Job>> left;
    {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        left = jobs_;
    }
    wake_all();
    return left;
}

// --- chunks ----------------------------------------------------------------------------------

// With the lock held: whether the thread takes a chunk of the job.
bool Schedule::may_take(const WorkerState& self, const Job& job) const {
    const ChunkSupply& supply = job.supply();
    if (supply.exhausted()) return false;
    const auto held_of_it = static_cast<std::size_t>(std::ranges::count_if(
        self.chunks, [&](const auto& one) { return one->job.get() == &job; }));
    if (held_of_it >= job.chunks_per_thread()) return false;
    if (!self.works_on(job)) {
        if (supply.threads() >= job.most_threads()) return false;
        // A busy thread leaves the job to idle threads, unless those may be on another node.
        const bool same_node = self.node >= 0 && self.node == job.node();
        const bool busy = !self.chunks.empty() && !self.caller && !same_node;
        if (busy && sleeping_ > woken_) return false;
        // Threads of another node help if the job's own node has too few or none.
        const bool foreign = self.node >= 0 && job.node() >= 0 && self.node != job.node();
        if (foreign && supply.threads() >= threads_of_a_node()) return false;
    }
    return supply.free_route().has_value();
}

// With the lock held, for a job of which it may take a chunk.
std::unique_ptr<HeldChunk> Schedule::take(WorkerState& self, const std::shared_ptr<Job>& job) {
    ChunkSupply& supply = job->supply();
    auto held = std::make_unique<HeldChunk>();
    held->job = job;
    held->chunk = supply.take(*supply.free_route(), most_threads_);
    if (!self.works_on(*job)) {
        self.jobs.push_back(job);
        supply.join();
    }
    return held;
}

// With the lock held: leaves the jobs without chunks to take, or all, so that other threads can
// join.
void Schedule::leave_jobs(WorkerState& self, bool all) {
    std::erase_if(self.jobs, [all](const std::weak_ptr<Job>& one) {
        const std::shared_ptr<Job> job = one.lock();
        if (job && !all && !job->supply().exhausted()) return false;
        if (job) job->supply().leave();
        return true;
    });
}

std::unique_ptr<HeldChunk> Schedule::claim(WorkerState& self, const Job* only) {
    std::unique_ptr<HeldChunk> held;
    std::size_t waking = 0;
    {
        const std::lock_guard lock(mutex_);
        leave_jobs(self, false);
        if ((only == nullptr || has_no_threads()) && !orphans_.empty()) {
            self.chunks.push_back(std::move(orphans_.back()));
            orphans_.pop_back();
        }
        const auto found = std::ranges::find_if(ready_, [&](const std::shared_ptr<Job>& job) {
            return (only == nullptr || job.get() == only) && may_take(self, *job);
        });
        if (found == ready_.end()) return nullptr;
        held = take(self, *found);
        ++progress_;
        if (spins()) self.last_chunk = std::chrono::steady_clock::now();
        ready_.erase(found);
        if (!held->job->supply().exhausted()) ready_.push_back(held->job);  // others come first
        waking = sleepers_to_wake();
    }
    wake(waking);
    return held;
}

void Schedule::put_back(const HeldChunk& held) {
    const std::lock_guard lock(mutex_);
    --progress_;  // it was not taken
    held.job->supply().put_back(held.chunk);
    if (std::ranges::find(ready_, held.job) == ready_.end()) ready_.push_back(held.job);
}

std::size_t Schedule::ready_jobs() const {
    const std::lock_guard lock(mutex_);
    return ready_.size();
}

bool Schedule::submitted(Job& job, std::size_t chunks) {
    const std::lock_guard lock(mutex_);
    ++progress_;
    return job.supply().submitted(chunks);
}

Schedule::Next Schedule::completed(const WorkerState& self, const HeldChunk& held) {
    const std::lock_guard lock(mutex_);
    ++progress_;
    ChunkSupply& supply = held.job->supply();
    supply.completed(held.chunk);
    if (supply.exhausted()) {  // also if fill() has found the end of a file
        std::erase(ready_, held.job);
        return supply.all_completed() && supply.begin_completion() ? Next::complete_job
                                                                   : Next::go_on;
    }
    return self.works_on(*held.job) ? Next::go_on : Next::wake_all;
}

bool Schedule::exhausted(const Job& job) const {
    const std::lock_guard lock(mutex_);
    return job.supply().exhausted();
}

// --- threads ---------------------------------------------------------------------------------

// Of the changes that matter to the thread.
std::uint64_t Schedule::generation(const WorkerState& self) const {
    const std::uint64_t work = generation_.load(std::memory_order_acquire);
    return self.caller ? work + caller_generation_.load(std::memory_order_acquire) : work;
}

Schedule::View Schedule::view(const WorkerState& self, const Job* only) const {
    const std::lock_guard lock(mutex_);
    return {.generation = generation(self),
            .starts = !waiting_.empty(),
            .last = only != nullptr && only->supply().exhausted(),
            .ends = stopping_ && helping_ == 0 && !self.holds_chunks() && orphans_.empty() &&
                    ready_.empty() && waiting_.empty(),
            .abandons = abandoned_};
}

// Looks for a change until it is time to sleep. False if there was none. If jobs wait for their
// start, the one thread that polls for them returns after a few looks, to poll again.
bool Schedule::spin(const WorkerState& self, std::uint64_t generation, const Job* only,
                    const Deadline& deadline) {
    constexpr int kPollsPerClock = 64;
    const auto is_over = [&] {
        return std::chrono::steady_clock::now() - self.last_chunk >= spin_ || deadline.is_over();
    };
    if (is_over()) return false;
    bool polls = false;
    {
        const std::lock_guard lock(mutex_);
        if (this->generation(self) != generation) return true;
        polls = starts_unwatched();
        polling_ = polling_ || polls;
    }
    if (!self.caller) ++spinning_;
    bool changed = false;
    do {
        for (int i = 0; i < kPollsPerClock && !changed; ++i) {
            changed = this->generation(self) != generation || (only != nullptr && only->done());
            if (!changed) host::relax();
        }
        // With fewer CPUs than threads another one must run.
        if (!changed) std::this_thread::yield();
    } while (!changed && !polls && !is_over());
    if (!self.caller) --spinning_;
    if (polls) {
        const std::lock_guard lock(mutex_);
        polling_ = false;
    }
    return changed || polls;
}

void Schedule::sleep(const WorkerState& self, std::uint64_t generation, const Job* only,
                     const Deadline& deadline) {
    if (spins() && spin(self, generation, only, deadline)) return;
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

void Schedule::leave(WorkerState& self) {
    if (self.filled) {  // another thread fills it again
        put_back(*self.filled);
        self.filled.reset();
    }
    bool left = false;
    bool stopping = false;
    {
        const std::lock_guard lock(mutex_);
        leave_jobs(self, true);
        left = !self.chunks.empty() || !ready_.empty() || starts_unwatched();
        for (auto& held : self.chunks) orphans_.push_back(std::move(held));
        self.chunks.clear();
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

// With the lock held: the number of threads that are likely to find work now.
std::size_t Schedule::useful_threads() const {
    std::size_t useful = orphans_.size() + (starts_unwatched() ? 1 : 0);
    for (const auto& job : ready_) {
        const ChunkSupply& supply = job->supply();
        if (supply.exhausted() || !supply.free_route()) continue;
        const std::size_t most = job->node() >= 0 && nodes_ > 1
                                     ? std::min(job->most_threads(), threads_of_a_node())
                                     : job->most_threads();
        useful += std::min(supply.most_left(), most - std::min(most, supply.threads()));
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
    const std::size_t useful = useful_threads();
    const std::size_t coming = woken_ + spinning_;  // they find it without being woken
    const std::size_t waking = std::min({kAtOnce, asleep, useful - std::min(useful, coming)});
    woken_ += waking;
    if (waking > 0) ++generation_;
    return waking;
}

}  // namespace waywiser::transfer
