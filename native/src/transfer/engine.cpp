#include "transfer/engine.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "host/affinity.hpp"
#include "transfer/limits.hpp"
#include "transfer/policy.hpp"
#include "transfer/policy_file.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kSlabBytes = std::size_t{32} << 20;
constexpr std::size_t kFewestSlabs = 4;
constexpr std::size_t kPinnedPerThread = std::size_t{16} << 20;
constexpr std::size_t kRelayBytes = std::size_t{64} << 20;
// The fraction of the pinned memory for tables of lists; none if the total is too small.
constexpr std::size_t kListFraction = 16;
constexpr std::size_t kLeastForLists = std::size_t{1} << 20;
constexpr std::size_t kLeastOfLists = std::size_t{128} << 10;
// Polling interval for chunks in flight. A chunk of 2 MiB takes 40 us on a PCIe 5.0 link.
constexpr auto kNap = std::chrono::microseconds(10);
// Limits of bytes in a batch of gathered chunks, and of bytes in flight before the next batch: the
// link always has the next batch, and chunks that become ready meanwhile are gathered.
constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
constexpr std::size_t kBytesAhead = std::size_t{8} << 20;
// Polling interval for the event that a transfer waits for.
constexpr auto kStartNap = std::chrono::microseconds(20);

// Counts forks: a different value than at an engine's creation shows a child process.
std::atomic<unsigned>& process_count() {
    static std::atomic<unsigned> count{0};
    return count;
}

// Engines that exit() has to stop while the driver still works. Never destroyed.
struct LiveEngines {
    std::mutex mutex;
    std::set<Engine*> engines;
};

LiveEngines& live_engines() {
    static LiveEngines& all = *new LiveEngines();
    return all;
}

// The warnings that this process has written. Never destroyed.
struct ReportedWarnings {
    std::mutex mutex;
    std::set<std::string> texts;
};

ReportedWarnings& reported_warnings() {
    static ReportedWarnings& all = *new ReportedWarnings();
    return all;
}

void report_once(const std::string& warning) {
    const std::lock_guard lock(reported_warnings().mutex);
    if (!reported_warnings().texts.insert(warning).second) return;
    std::fprintf(stderr, "waywiser: warning: %s\n", warning.c_str());
}

// Holds the mutex throughout, so that no other thread destroys an engine meanwhile.
void stop_all() {
    const std::lock_guard lock(live_engines().mutex);
    for (Engine* engine : live_engines().engines) {
        if (!engine->forked()) engine->stop();
    }
}

unsigned this_process() {
    static const bool watched = [] {
        // The mutexes are free in a child, which may create its own engines.
        pthread_atfork(
            [] {
                live_engines().mutex.lock();
                reported_warnings().mutex.lock();
            },
            [] {
                reported_warnings().mutex.unlock();
                live_engines().mutex.unlock();
            },
            [] {
                reported_warnings().mutex.unlock();
                live_engines().mutex.unlock();
                ++process_count();
            });
        std::atexit(stop_all);
        return true;
    }();
    (void)watched;
    return process_count();
}

std::size_t default_pinned(const EngineOptions& options) {
    return pinned_limit(options.pinned_bytes != 0 ? options.pinned_bytes
                                                  : options.threads * kPinnedPerThread);
}

std::size_t list_bytes(const EngineOptions& options) {
    if (options.pinned_bytes < kLeastForLists) return 0;
    return std::max(options.pinned_bytes / kListFraction, kLeastOfLists);
}

EngineOptions completed(EngineOptions options) {
    const std::size_t most = thread_limit();
    options.threads = options.threads == 0 ? most : std::min(options.threads, most);
    options.pinned_bytes = default_pinned(options);
    if (options.relay_bytes == 0) options.relay_bytes = kRelayBytes;
    return options;
}

// The device whose stream has the last operation of a chunk.
int last_device(const Route& route) {
    return route.second_device >= 0 ? route.second_device : route.device;
}

}  // namespace

// A chunk with its resources.
struct Engine::Held {
    std::shared_ptr<Job> job;
    Chunk chunk;
    std::optional<gpu::Event> event;     // after the last operation
    std::optional<gpu::Event> handover;  // between two devices
    bool submitted = false;
    bool queued = false;  // counts among the queued bytes of its copy engine

    [[nodiscard]] const Route& route() const { return job->routes()[chunk.route]; }
};

// A working thread: its chunks, in the order in which they were submitted.
struct Engine::Worker {
    std::vector<std::unique_ptr<Held>> chunks;
    std::unique_ptr<Held> filled;  // its copy engine does not accept it yet
    // Jobs that it works on until no chunks are left to take: threads that switch between jobs
    // would wake each other constantly and lose their cached slots.
    std::vector<std::weak_ptr<Job>> jobs;
    bool caller = false;  // the thread of a program that waits
    int node = -1;

    [[nodiscard]] bool works_on(const Job& job) const {
        return std::ranges::any_of(jobs, [&](const auto& one) { return one.lock().get() == &job; });
    }
};

Engine::Engine(Machine machine, EngineOptions options)
    : Engine(std::move(machine), std::move(options), FoundPolicy{}) {}

Engine::Engine(Machine machine, EngineOptions options, const FoundPolicy& found)
    : machine_(std::move(machine)),
      options_(completed(std::move(options))),
      process_(this_process()),
      lists_(list_bytes(options_), usable_node(-1),
             [this](const std::string& why) { warn_of_pinning(why); }) {
    if (!found.warning.empty()) warn(found.warning);
    if (found.policy && !options_.plain) {
        const PolicyLimits limits{.threads = options_.threads,
                                  .relays = options_.relays,
                                  .host_slot = std::bit_floor(host_staging_bytes() / kFewestSlabs),
                                  .relay_slot = std::bit_floor(options_.relay_bytes / kFewestSlabs),
                                  .polite_bytes = options_.polite_bytes,
                                  .multiprocessors = options_.list_multiprocessors};
        policy_ = std::make_unique<const PolicyTable>(found.policy, limits);
        policy_file_ = found.file;
        plain_below_ = policy_->plain_below(kPlainBelow);
        plain_below_with_gpu_ = policy_->plain_below(kPlainBelow, true);
    }
    const std::lock_guard lock(live_engines().mutex);
    live_engines().engines.insert(this);
}

Engine::~Engine() {
    stop();
    const std::lock_guard lock(live_engines().mutex);
    live_engines().engines.erase(this);
}

bool Engine::forked() const { return process_ != process_count(); }

void Engine::check_process() const {
    if (forked()) throw ForkedProcess();
}

// Wakes all threads. Used for rare changes: an end, staging that others wait for.
void Engine::notify_work() {
    {
        const std::lock_guard lock(mutex_);
        ++generation_;
        woken_ = sleeping_;
    }
    work_.notify_all();
    help_.notify_all();
}

// With the mutex held.
std::size_t Engine::threads_of_a_node() const {
    return std::max<std::size_t>(threads_.size() / std::max<std::size_t>(machine_.numa.size(), 1),
                                 1);
}

// With the mutex held: the number of threads to wake now. A few, each of which wakes more if it
// finds more work, since waking a thread takes its waker several microseconds. No more than are
// likely to find work.
std::size_t Engine::sleepers_to_wake() {
    constexpr std::size_t kAtOnce = 3;
    const std::size_t asleep = sleeping_ - std::min(sleeping_, woken_);
    if (asleep == 0) return 0;
    std::size_t useful = orphans_.size() + (starts_unwatched() ? 1 : 0);
    for (const auto& job : ready_) {
        if (exhausted(*job) || !free_route(*job)) continue;
        const std::size_t left = std::min(job->bytes_, job->end_.load());
        const std::size_t bytes = left - std::min(left, job->next_);
        const std::size_t chunks = job->returned_.size() + (bytes + job->least_ - 1) / job->least_;
        const std::size_t most = job->node_ >= 0 && machine_.numa.size() > 1
                                     ? std::min(job->most_threads_, threads_of_a_node())
                                     : job->most_threads_;
        useful += std::min(chunks, most - std::min(most, job->threads_));
    }
    const std::size_t waking = std::min({kAtOnce, asleep, useful - std::min(useful, woken_)});
    woken_ += waking;
    if (waking > 0) ++generation_;
    return waking;
}

void Engine::wake(std::size_t threads) {
    for (; threads > 0; --threads) work_.notify_one();
}

// There is new work.
void Engine::wake_some() {
    std::size_t waking = 0;
    {
        const std::lock_guard lock(mutex_);
        ++generation_;
        waking = sleepers_to_wake();
    }
    wake(waking);
}

void Engine::warn(const std::string& message) {
    constexpr std::size_t kMostWarnings = 64;
    {
        const std::lock_guard lock(resources_);
        if (warnings_.size() == kMostWarnings ||
            std::ranges::find(warnings_, message) != warnings_.end()) {
            return;
        }
        warnings_.push_back(message);
        warning_bytes_ += message.size() + 1;
    }
    if (options_.report_warnings) report_once(message);
}

std::vector<std::string> Engine::warnings() const {
    const std::lock_guard lock(resources_);
    return warnings_;
}

std::size_t Engine::threads() const {
    const std::lock_guard lock(mutex_);
    return threads_.size();
}

std::size_t Engine::jobs() const {
    const std::lock_guard lock(mutex_);
    return jobs_;
}

std::size_t Engine::pinned_bytes() const {
    const std::lock_guard lock(resources_);
    std::size_t total = lists_.pinned_bytes();
    for (const auto& [key, slots] : slots_) total += key.second ? slots->bytes() : 0;
    return total;
}

// --- resources -------------------------------------------------------------------------------

// One stream for each copy engine: a GPU that switches streams between chunks of 2 MiB loses 3 to 6
// us for each of them (measured on H200).
gpu::Stream& Engine::stream(int device, Direction direction) {
    const std::lock_guard lock(resources_);
    const auto known = streams_.find({device, direction});
    if (known != streams_.end()) return known->second;
    return streams_.emplace(Lane{device, direction}, gpu::Stream(device)).first->second;
}

gpu::Event Engine::take_event(int device) {
    {
        const std::lock_guard lock(resources_);
        auto& kept = events_[device];
        if (!kept.empty()) {
            gpu::Event event = std::move(kept.back());
            kept.pop_back();
            return event;
        }
    }
    return gpu::Event(device, gpu::EventUse::ordering);
}

void Engine::keep_event(int device, gpu::Event event) {
    const std::lock_guard lock(resources_);
    events_[device].push_back(std::move(event));
}

// The node, or another one whose CPUs may be used.
NumaNode Engine::usable_node(int node) const {
    const NumaNode* known = machine_.node(node);
    if (known == nullptr || known->cpus.empty()) {
        const auto any =
            std::ranges::find_if(machine_.numa, [](const NumaNode& n) { return !n.cpus.empty(); });
        known = any == machine_.numa.end() ? nullptr : &*any;
    }
    return known == nullptr ? NumaNode{0, host::allowed_cpus()} : *known;
}

void Engine::warn_of_pinning(const std::string& why) {
    unpinned_ = true;
    warn("staging memory could not be pinned (" + why +
         "): copies are slower; raise the limit of locked memory (ulimit -l)");
}

std::optional<Slot> Engine::host_staging(int node, int device, std::size_t bytes) {
    return slots(node, device).take(bytes);
}

std::optional<Slot> Engine::device_staging(int device, std::size_t bytes) {
    return bounces(device).take(bytes);
}

std::size_t Engine::usable_nodes() const {
    const auto nodes = std::ranges::count_if(
        machine_.numa, [](const NumaNode& node) { return !node.cpus.empty(); });
    return std::max<std::size_t>(static_cast<std::size_t>(nodes), 1);
}

// Pinned staging memory at each node.
std::size_t Engine::host_staging_bytes() const {
    return (options_.pinned_bytes - list_bytes(options_)) / usable_nodes();
}

Slots& Engine::slots(int node, int device) {
    const std::lock_guard lock(resources_);
    const bool pinned = device >= 0;
    if (pinned) pinning_device_ = device;
    const NumaNode place = usable_node(node);
    auto& own = slots_[{place.index, pinned}];
    if (own) return *own;
    const auto make = [this, place, pinned](std::size_t bytes) {
        int context = -1;
        if (pinned) {
            const std::lock_guard inner(resources_);
            context = pinning_device_;
        }
        return pinned_slab(bytes, place, context,
                           [this](const std::string& why) { warn_of_pinning(why); });
    };
    const std::size_t most = host_staging_bytes();
    // Several slabs, so that slots of one size do not use all of them.
    const std::size_t slab = std::min(kSlabBytes, std::bit_floor(most / kFewestSlabs));
    own = std::make_unique<Slots>(most, slab, make, [this] { notify_work(); });
    return *own;
}

Slots& Engine::bounces(int device) {
    const std::lock_guard lock(resources_);
    auto& own = bounces_[device];
    if (!own) {
        own = std::make_unique<Slots>(
            options_.relay_bytes, kSlabBytes,
            [device](std::size_t bytes) { return device_slab(bytes, device); },
            [this] { notify_work(); });
    }
    return *own;
}

bool Engine::are_peers(int one, int other) const {
    const auto sees = [this](int gpu, int peer) {
        const GpuPlace* place = machine_.gpu(gpu);
        return place != nullptr && std::ranges::find(place->peers, peer) != place->peers.end();
    };
    return options_.peer_access && sees(one, other) && sees(other, one);
}

bool Engine::enable_peers(int one, int other) {
    if (!are_peers(one, other)) return false;
    const std::lock_guard lock(resources_);
    if (peers_.contains({one, other})) return true;
    gpu::enable_peer_access(one, other);
    gpu::enable_peer_access(other, one);
    peers_.insert({one, other});
    peers_.insert({other, one});
    return true;
}

// --- starting and stopping -------------------------------------------------------------------

namespace {

// Blocks signals, which are for the program's own threads, in threads that are started here.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all{};
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

void Engine::spawn(std::size_t wanted) {
    const std::lock_guard lock(mutex_);
    const std::size_t most = std::max<std::size_t>(options_.threads, 2) - 1;
    wanted = std::min(wanted, most);
    while (threads_.size() < wanted && !stopping_) {
        try {
            const SignalsBlocked blocked;
            const std::size_t index = threads_.size();
            threads_.emplace_back([this, index] {
                pthread_setname_np(pthread_self(), "waywiser-copy");
                prctl(PR_SET_TIMERSLACK, 1UL);
                gpu::relax_capture();
                Worker self;
                // The thread that starts it may be bound to a single CPU.
                if (!machine_.numa.empty()) {
                    const NumaNode& node = machine_.numa[index % machine_.numa.size()];
                    const bool bound = host::run_on(node.cpus);
                    if (bound && machine_.numa.size() > 1) self.node = node.index;
                }
                work(self, nullptr, Until::done);
            });
        } catch (const std::system_error&) {
            if (threads_.empty()) throw;
            return;  // fewer threads can do the work
        }
    }
}

void Engine::start(const std::shared_ptr<Job>& job, std::optional<gpu::Event> after) {
    std::shared_ptr<const gpu::Event> event;
    if (after) event = std::make_shared<const gpu::Event>(std::move(*after));
    start(job, std::move(event));
}

void Engine::start(const std::shared_ptr<Job>& job, std::shared_ptr<const gpu::Event> after) {
    check_process();
    spawn(std::max<std::size_t>(job->chunks(), 1));
    job->on_route_.assign(job->routes().size(), 0);
    job->gathering_.resize(job->routes().size());
    const bool waits = after != nullptr;
    const bool empty = job->bytes() == 0;
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) throw Cancelled("the transfer context is closed: create another one");
        job->start_ = std::move(after);
        if (waits) {
            waiting_.push_back(job);
        } else if (!empty) {
            ready_.push_back(job);
        }
        ++jobs_;
    }
    wake_some();
    if (empty && !waits) complete(job);
}

void Engine::run(const std::shared_ptr<Job>& job, Until until, std::optional<gpu::Event> after) {
    start(job, std::move(after));
    bool helps = false;
    {
        const std::lock_guard lock(mutex_);
        helps = !helping_ && threads_.size() < options_.threads;
        if (helps) helping_ = true;
    }
    if (helps) {
        Worker self;
        self.caller = true;
        work(self, job, until);
        bool left = false;
        bool stopping = false;
        {
            const std::lock_guard lock(mutex_);
            // Other threads take over its chunks and the polling of starts.
            leave_jobs(self, [](const Job&) { return true; });
            left = !self.chunks.empty() || starts_unwatched();
            for (auto& held : self.chunks) orphans_.push_back(std::move(held));
            helping_ = false;
            stopping = stopping_;
        }
        if (stopping) {
            notify_work();
        } else if (left) {
            wake_some();
        }
    }
    {
        std::unique_lock lock(job->mutex_);
        job->changed_.wait(lock, [&] {
            return job->ended() || (until == Until::submitted && job->submitted_ && !job->failure_);
        });
    }
    job->rethrow();
}

void Engine::stop() {
    if (forked()) return;
    const std::lock_guard once(ending_);  // a second caller returns when all has ended
    std::list<std::shared_ptr<Job>> cancelled;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        cancelled.swap(waiting_);
    }
    notify_work();
    for (const auto& job : cancelled) {
        fail(*job, std::make_exception_ptr(
                       Cancelled("the transfer context was closed before the transfer started")));
        complete(job);
    }
    std::vector<std::thread> threads;
    {
        const std::lock_guard lock(mutex_);
        threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
    lists_.stop();
}

// --- working ---------------------------------------------------------------------------------

// Polling interval for chunks in flight, since each poll delays submissions. A caller does not
// sleep: it yields, as the runtime does while it waits for a stream.
void Engine::nap(const Worker& self, bool last) {
    if (!self.caller) return std::this_thread::sleep_for(kNap);
    const auto end = std::chrono::steady_clock::now() + kNap;
    do {
        std::this_thread::yield();
    } while (!last && std::chrono::steady_clock::now() < end);
}

// Whether a caller's thread leaves: its job has reached the requested state.
bool Engine::leaves(const Job& only, Until until) {
    if (only.done()) return true;
    if (until == Until::done) return false;
    const std::lock_guard lock(only.mutex_);
    // The engine's threads take over its chunks in flight.
    return only.submitted_ && !only.failure_;
}

// With the mutex held: whether a thread of the engine ends, after stop() when all is done.
bool Engine::ends(const Worker& self) const {
    return stopping_ && !helping_ && self.chunks.empty() && !self.filled && orphans_.empty() &&
           ready_.empty() && waiting_.empty();
}

void Engine::work(Worker& self, const std::shared_ptr<Job>& only, Until until) {
    for (;;) {
        std::uint64_t seen = 0;
        bool starts = false;
        bool last = false;
        {
            const std::lock_guard lock(mutex_);
            seen = generation_;
            starts = !waiting_.empty();
            last = only && exhausted(*only);
            if (!only && ends(self)) return;
        }
        if (only && leaves(*only, until)) return;
        if (starts) poll_starts();
        bool progress = submit_filled(self);
        progress |= reap(self);
        if (!self.filled) {
            std::size_t waking = 0;
            auto held = claim(self, only.get(), waking);
            wake(waking);
            if (held) progress |= process(self, std::move(held));
        }
        if (progress) continue;
        if (!self.chunks.empty() || self.filled) {
            nap(self, last);
            continue;
        }
        std::unique_lock<std::mutex> lock(mutex_);
        if (generation_ != seen) continue;
        std::condition_variable& sleep = self.caller ? help_ : work_;
        if (!self.caller) ++sleeping_;
        // Every wake-up repeats the loop: it may have been meant for another thread.
        if (starts_unwatched()) {  // this thread polls the starts
            polling_ = true;
            sleep.wait_for(lock, kStartNap);  // NOLINT(bugprone-spuriously-wake-up-functions)
            polling_ = false;
        } else {
            sleep.wait(lock);  // NOLINT(bugprone-spuriously-wake-up-functions)
        }
        if (!self.caller) {
            --sleeping_;
            if (woken_ > 0) --woken_;
        }
    }
}

void Engine::poll_starts() {
    std::vector<std::shared_ptr<Job>> failed;
    bool some = false;
    {
        const std::lock_guard lock(mutex_);
        for (auto it = waiting_.begin(); it != waiting_.end();) {
            const std::shared_ptr<Job> job = *it;
            bool started = true;
            try {
                started = job->start_->done();
            } catch (...) {
                fail(*job, std::current_exception());
                failed.push_back(job);
                it = waiting_.erase(it);
                continue;
            }
            if (!started) {
                ++it;
                continue;
            }
            it = waiting_.erase(it);
            if (job->bytes() == 0) {
                failed.push_back(job);  // nothing to move: complete at once
            } else {
                ready_.push_back(job);
                some = true;
            }
        }
    }
    if (some) wake_some();
    for (const auto& job : failed) complete(job);
}

// Completes the oldest of the thread's chunks if it is done: they end in order. New work for the
// GPU has priority over completing the next one.
bool Engine::reap(Worker& self) {
    if (self.chunks.empty()) return false;
    bool arrived = true;
    try {
        Held& oldest = *self.chunks.front();
        if (oldest.event ? !oldest.event->done() : !batch_ended(oldest, arrived)) return false;
    } catch (...) {
        fail(*self.chunks.front()->job, std::current_exception());
        arrived = false;
    }
    std::unique_ptr<Held> own = std::move(self.chunks.front());
    self.chunks.erase(self.chunks.begin());
    if (!arrived) settle(own->chunk);
    {
        const std::lock_guard lock(own->job->mutex_);
        if (own->event) std::erase(own->job->in_flight_, &*own->event);
        arrived = arrived && !own->job->failure_;
    }
    leave_queue(*own);
    if (arrived) {
        try {
            own->job->drain(own->chunk);
        } catch (...) {
            fail(*own->job, std::current_exception());
            arrived = false;
        }
    }
    finish(self, std::move(own), arrived);
    return true;
}

bool Engine::exhausted(const Job& job) {
    const std::size_t end = std::min(job.bytes_, job.end_.load());
    return job.next_ >= end && job.returned_.empty();
}

// Whether no other thread polls the starts of transfers.
bool Engine::starts_unwatched() const { return !waiting_.empty() && !polling_; }

// Bytes of the chunk that starts at the job's next byte. If CPUs fill chunks, sizes grow with the
// number of earlier bytes per thread, so that the link has work while the next ones are filled.
// Sizes shrink with the number of remaining bytes, so that no thread or link is left working alone.
// The same applies to two links: the second waits for the first chunk, and the first for the last
// one.
std::size_t Engine::next_chunk(const Job& job) const {
    const std::size_t threads = std::min(job.most_threads_, options_.threads);
    const std::size_t left = job.bytes_ - job.next_;
    const std::size_t grown = job.two_links_ ? job.next_
                              : job.fills_   ? job.next_ / threads
                                             : job.chunk_;
    const std::size_t shrunk = job.two_links_ ? left / 2 : left * (job.fills_ ? 2 : 1) / threads;
    const std::size_t whole = std::min({job.chunk_, grown, shrunk}) / job.least_ * job.least_;
    const std::size_t size = std::max(whole, job.least_);
    const std::size_t over = (job.first_ + job.next_) % job.least_;  // only for the first chunk
    return std::min(left, size - over);
}

std::optional<std::size_t> Engine::free_route(const Job& job) {
    const auto& routes = job.routes();
    for (std::size_t i = 0; i < routes.size(); ++i) {
        const std::size_t n = (job.turn_ + i) % routes.size();
        const Route& route = routes[n];
        if (job.on_route_[n] < route.most_chunks) return n;
    }
    return std::nullopt;
}

// With the mutex held: leaves the jobs for which `leaves` is true, so that other threads can join.
void Engine::leave_jobs(Worker& self, bool (*leaves)(const Job&)) {
    std::erase_if(self.jobs, [leaves](const std::weak_ptr<Job>& one) {
        const std::shared_ptr<Job> job = one.lock();
        if (job && !leaves(*job)) return false;
        if (job) --job->threads_;
        return true;
    });
}

// Takes the next chunk. `waking`: number of threads to wake afterwards.
std::unique_ptr<Engine::Held> Engine::claim(Worker& self, const Job* only, std::size_t& waking) {
    const std::lock_guard lock(mutex_);
    leave_jobs(self, exhausted);
    if (only == nullptr && !orphans_.empty()) {
        self.chunks.push_back(std::move(orphans_.back()));
        orphans_.pop_back();
    }
    for (std::size_t i = 0; i < ready_.size(); ++i) {
        const std::shared_ptr<Job> job = ready_[i];
        if ((only != nullptr && job.get() != only) || exhausted(*job)) continue;
        const auto held_of_it = static_cast<std::size_t>(
            std::ranges::count_if(self.chunks, [&](const auto& one) { return one->job == job; }));
        if (held_of_it >= job->chunks_per_thread_) continue;
        const bool joins = !self.works_on(*job);
        if (joins && job->threads_ >= job->most_threads_) continue;
        // A busy thread leaves the job to idle threads, unless those may be on another node.
        const bool same_node = self.node >= 0 && self.node == job->node_;
        const bool busy = !self.chunks.empty() && only == nullptr && !same_node;
        if (joins && busy && sleeping_ > woken_) continue;
        // Threads of another node help if the job's own node has too few or none.
        const bool foreign = self.node >= 0 && job->node_ >= 0 && self.node != job->node_;
        if (foreign && joins && job->threads_ >= threads_of_a_node()) continue;
        const auto route = free_route(*job);
        if (!route) continue;
        auto held = std::make_unique<Held>();
        held->job = job;
        held->chunk.route = *route;
        if (!job->returned_.empty()) {
            std::tie(held->chunk.at, held->chunk.bytes) = job->returned_.back();
            job->returned_.pop_back();
        } else {
            held->chunk.at = job->next_;
            held->chunk.bytes = next_chunk(*job);
            job->next_ += held->chunk.bytes;
        }
        held->chunk.claimed = held->chunk.bytes;
        job->turn_ = *route + 1;
        ++job->incomplete_;
        ++job->not_submitted_;
        ++job->on_route_[*route];
        if (joins) {
            self.jobs.push_back(job);
            ++job->threads_;
        }
        ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!exhausted(*job)) ready_.push_back(job);  // other jobs come first
        waking = sleepers_to_wake();
        return held;
    }
    return nullptr;
}

// The scarcer resource comes first: if there is none, the other one is not touched.
bool Engine::take_staging(Held& held) {
    const Route& route = held.route();
    const auto from = [](Slots& pool, std::size_t bytes) {
        auto slot = pool.take(bytes);
        if (slot) return slot;
        pool.await_change();  // and a second try, so that a slot returned before this is not missed
        return pool.take(bytes);
    };
    if (route.bounce_bytes > 0) {
        auto bounce = from(bounces(route.device), route.bounce_bytes);
        if (!bounce) return false;
        held.chunk.bounce = std::move(*bounce);
    }
    if (route.slot_bytes > 0) {
        auto slot = from(slots(held.job->node_, route.device), route.slot_bytes);
        if (!slot) {
            held.chunk.bounce.release();
            return false;
        }
        held.chunk.slot = std::move(*slot);
    }
    return true;
}

// Whether the copy engine of its route accepts the chunk now. With a limit it holds at most that
// many bytes, or a single larger chunk. Chunks on one stream end in order, so that any thread can
// detect which have ended even if their own threads are busy.
bool Engine::enter_queue(Held& held) {
    if (options_.polite_bytes == 0) return true;
    const std::lock_guard lock(mutex_);
    Queue& queue = queued_[{held.route().device, held.route().direction}];
    while (!queue.chunks.empty() && queue.chunks.front()->event->done()) {
        queue.chunks.front()->queued = false;
        queue.bytes -= queue.chunks.front()->chunk.claimed;
        queue.chunks.pop_front();
    }
    if (queue.bytes != 0 && queue.bytes + held.chunk.claimed > options_.polite_bytes) return false;
    queue.bytes += held.chunk.claimed;
    held.queued = true;
    return true;
}

// It is in the stream now: others may query its event.
void Engine::line_up(Held& held) {
    if (options_.polite_bytes == 0) return;
    const std::lock_guard lock(mutex_);
    queued_[{held.route().device, held.route().direction}].chunks.push_back(&held);
}

void Engine::leave_queue(Held& held) {
    if (options_.polite_bytes == 0) return;
    const std::lock_guard lock(mutex_);
    if (!held.queued) return;
    Queue& queue = queued_[{held.route().device, held.route().direction}];
    std::erase(queue.chunks, &held);
    queue.bytes -= held.chunk.claimed;
    held.queued = false;
}

// After a failure: waits until no GPU uses the chunk's staging. If that cannot be determined
// because the context is lost, the staging is not used again.
void Engine::settle(Chunk& chunk) {
    try {
        for (const gpu::Stream* used : {chunk.stream, chunk.second}) {
            if (used != nullptr) used->synchronize();
        }
    } catch (const gpu::Error&) {
        chunk.slot.abandon();
        chunk.bounce.abandon();
    }
}

void Engine::submit(Held& held) {
    const Route& route = held.route();
    Chunk& chunk = held.chunk;
    held.event.emplace(take_event(last_device(held.route())));
    chunk.stream = &stream(route.device, route.direction);
    if (route.second_device >= 0) {
        chunk.second = &stream(route.second_device, route.second_direction);
        held.handover.emplace(take_event(route.device));
        chunk.handover = &*held.handover;
    }
    try {
        held.job->submit(chunk);
        held.event->record(chunk.second != nullptr ? *chunk.second : *chunk.stream);
        const std::lock_guard lock(held.job->mutex_);
        held.job->in_flight_.push_back(&*held.event);
    } catch (...) {
        settle(chunk);
        throw;
    }
}

// Fills a chunk and submits it. False if it got no staging: another thread takes it later.
bool Engine::process(Worker& self, std::unique_ptr<Held> held) {
    Job& job = *held->job;
    bool arrived = true;
    try {
        {
            const std::lock_guard lock(job.mutex_);
            arrived = !job.failure_;
        }
        if (arrived && !take_staging(*held)) {
            hand_back(*held);
            return false;
        }
        if (arrived) job.fill(held->chunk);
    } catch (...) {
        fail(job, std::current_exception());
        arrived = false;
    }
    if (!arrived || held->route().device < 0 || held->chunk.bytes == 0) {
        pass_on(self, std::move(held), arrived);
        return true;
    }
    if (job.gathers_ && options_.polite_bytes == 0) {
        gather(self, std::move(held));
        return true;
    }
    self.filled = std::move(held);
    submit_filled(self);
    return true;
}

// --- chunks that are submitted together ------------------------------------------------------

void Engine::gather(Worker& self, std::unique_ptr<Held> held) {
    const std::shared_ptr<Job> job = held->job;
    const Route& route = held->route();
    Chunk& chunk = held->chunk;
    try {  // their first use creates them
        chunk.stream = &stream(route.device, route.direction);
        if (route.second_device >= 0) {
            chunk.second = &stream(route.second_device, route.second_direction);
        }
    } catch (...) {
        fail(*job, std::current_exception());
        return pass_on(self, std::move(held), false);
    }
    const std::size_t index = chunk.route;
    self.chunks.push_back(std::move(held));
    {
        const std::lock_guard lock(job->mutex_);
        job->gathering_[index].ready.push_back(&chunk);
    }
    submit_gathered(*job, index);
}

// Submits the ready chunks of the route, unless another thread does so: that one, or an owner of a
// chunk, checks again.
void Engine::submit_gathered(Job& job, std::size_t route) {
    Job::Gathering& gathering = job.gathering_[route];
    std::size_t seen = 0;
    const auto ready = [&] {
        const std::lock_guard lock(job.mutex_);
        return gathering.ready.size();
    };
    do {
        const std::unique_lock turn(gathering.submitting, std::try_to_lock);
        if (!turn) return;
        do {
            end_batches(job, route);
        } while (submit_batch(job, route, seen));
    } while (ready() > seen);  // added while this thread was submitting
}

// With `submitting` held: marks the batches that have ended, for the owners of their chunks.
void Engine::end_batches(Job& job, std::size_t index) {
    auto& batches = job.gathering_[index].batches;
    const Route& route = job.routes()[index];
    while (!batches.empty()) {
        const std::shared_ptr<Batch> oldest = batches.front();
        try {
            if (!oldest->event->done()) return;
        } catch (...) {
            fail(job, std::current_exception());
            oldest->failed = true;
        }
        batches.pop_front();
        {
            const std::lock_guard lock(job.mutex_);
            std::erase(job.in_flight_, &*oldest->event);
        }
        keep_event(last_device(route), std::move(*oldest->event));
        if (oldest->handover) keep_event(route.device, std::move(*oldest->handover));
        oldest->ended = true;
    }
}

// With `submitting` held: submits the next batch. False if there is none, or enough in flight.
// `left`: number of chunks that were ready and stay so.
bool Engine::submit_batch(Job& job, std::size_t index, std::size_t& left) {
    Job::Gathering& gathering = job.gathering_[index];
    {
        const std::lock_guard lock(job.mutex_);
        left = gathering.ready.size();
        if (left == 0) return false;
    }
    const Route& route = job.routes()[index];
    std::size_t ahead = 0;
    for (const auto& batch : gathering.batches) ahead += batch->bytes;
    {
        const std::lock_guard lock(mutex_);
        if (exhausted(job)) ahead = 0;  // nothing more is gathered
    }
    const auto batch = std::make_shared<Batch>();
    std::vector<Chunk*> chunks;
    {
        const std::lock_guard lock(job.mutex_);
        batch->failed = static_cast<bool>(job.failure_);
        left = gathering.ready.size();
        const bool enough = ahead >= kBytesAhead && gathering.batches.size() > 1;
        if (enough && !batch->failed) return false;
        // The runtime may reject memory that is not pinned in a batch.
        const std::size_t most = unpinned_ ? 0 : kBatchBytes;
        std::size_t count = 0;
        for (; count < gathering.ready.size(); ++count) {
            const std::size_t bytes = gathering.ready[count]->bytes;
            if (count > 0 && batch->bytes + bytes > most) break;
            batch->bytes += bytes;
        }
        left -= count;
        const auto end = gathering.ready.begin() + static_cast<std::ptrdiff_t>(count);
        chunks.assign(gathering.ready.begin(), end);
        gathering.ready.erase(gathering.ready.begin(), end);
    }
    if (!batch->failed) {
        Chunk& first = *chunks.front();
        try {
            batch->event.emplace(take_event(last_device(route)));
            if (first.second != nullptr) {
                batch->handover.emplace(take_event(route.device));
                first.handover = &*batch->handover;
            }
            job.submit_together(chunks);
            batch->event->record(first.second != nullptr ? *first.second : *first.stream);
        } catch (...) {
            fail(job, std::current_exception());
            batch->failed = true;
        }
    }
    const std::size_t count = chunks.size();
    batch->ended = batch->failed;
    if (!batch->failed) gathering.batches.push_back(batch);
    {
        const std::lock_guard lock(job.mutex_);
        if (!batch->failed) job.in_flight_.push_back(&*batch->event);
        for (Chunk* chunk : chunks) chunk->batch = batch;  // their owners may end them from now on
    }
    bool all = false;
    {
        const std::lock_guard lock(mutex_);
        job.not_submitted_ -= count;
        all = job.not_submitted_ == 0 && exhausted(job);
    }
    if (all) all_submitted(job);
    return true;
}

// Whether a gathered chunk is not in flight any more; `arrived`: it was copied.
bool Engine::batch_ended(Held& held, bool& arrived) {
    Job& job = *held.job;
    const auto batch = [&] {
        const std::lock_guard lock(job.mutex_);
        return held.chunk.batch;
    };
    auto known = batch();
    if (!known || !known->ended) {
        submit_gathered(job, held.chunk.route);
        known = batch();
        if (!known || !known->ended) return false;
    }
    arrived = !known->failed;
    return true;
}

// Submits the chunk that the thread has filled. False if its copy engine has enough work.
bool Engine::submit_filled(Worker& self) {
    if (!self.filled) return false;
    bool arrived = true;
    try {
        if (!enter_queue(*self.filled)) return false;
    } catch (...) {
        fail(*self.filled->job, std::current_exception());
        arrived = false;
    }
    std::unique_ptr<Held> held = std::move(self.filled);
    if (!arrived) {
        pass_on(self, std::move(held), false);
        return true;
    }
    try {
        submit(*held);
        held->submitted = true;
        line_up(*held);
    } catch (...) {
        fail(*held->job, std::current_exception());
        arrived = false;
        if (!held->submitted) leave_queue(*held);
    }
    pass_on(self, std::move(held), arrived);
    return true;
}

// A chunk is submitted, or has ended without.
void Engine::pass_on(Worker& self, std::unique_ptr<Held> held, bool arrived) {
    const std::shared_ptr<Job> job = held->job;
    bool all = false;
    {
        const std::lock_guard lock(mutex_);
        --job->not_submitted_;
        all = job->not_submitted_ == 0 && exhausted(*job);
    }
    if (held->submitted) {
        self.chunks.push_back(std::move(held));
    } else {
        finish(self, std::move(held), arrived);
    }
    if (all) all_submitted(*job);
}

void Engine::all_submitted(Job& job) {
    {
        const std::lock_guard lock(job.mutex_);
        job.submitted_ = true;
        job.changed_.notify_all();
    }
    {
        const std::lock_guard lock(mutex_);
        ++generation_;
    }
    help_.notify_all();
}

void Engine::leave_route(Job& job, const Chunk& chunk) {
    --job.incomplete_;
    --job.on_route_[chunk.route];
}

void Engine::hand_back(Held& held) {
    const std::lock_guard lock(mutex_);
    Job& job = *held.job;
    leave_route(job, held.chunk);
    --job.not_submitted_;
    job.returned_.emplace_back(held.chunk.at, held.chunk.bytes);
    if (std::ranges::find(ready_, held.job) == ready_.end()) ready_.push_back(held.job);
}

void Engine::finish(Worker& self, std::unique_ptr<Held> held, bool arrived) {
    const std::shared_ptr<Job> job = held->job;
    const Chunk& chunk = held->chunk;
    if (held->event) keep_event(last_device(held->route()), std::move(*held->event));
    if (held->handover) keep_event(held->route().device, std::move(*held->handover));
    if (arrived) job->moved_.fetch_add(chunk.bytes, std::memory_order_relaxed);
    bool last = false;
    bool unseen = false;
    {
        const std::lock_guard lock(mutex_);
        leave_route(*job, chunk);
        if (exhausted(*job)) {  // also if fill() has found the end of a file
            std::erase(ready_, job);
            last = job->incomplete_ == 0;
        } else {
            unseen = !self.works_on(*job);
        }
    }
    held.reset();  // free its staging before waiters are notified
    if (last) {
        complete(job);
    } else if (unseen) {  // its threads may sleep until a route is free
        notify_work();
    }
}

// From now on its chunks are only completed.
void Engine::fail(Job& job, std::exception_ptr why) {
    {
        const std::lock_guard lock(job.mutex_);
        if (!job.failure_) job.failure_ = std::move(why);
    }
    job.ends_at(0);
}

void Engine::complete(const std::shared_ptr<Job>& job) {
    try {
        const bool failed = [&] {
            const std::lock_guard lock(job->mutex_);
            return static_cast<bool>(job->failure_);
        }();
        if (!failed) job->finish();
    } catch (...) {
        fail(*job, std::current_exception());
    }
    {
        const std::lock_guard lock(mutex_);
        --jobs_;
    }
    job->end();
    bool stopping = false;
    {
        const std::lock_guard lock(mutex_);
        ++generation_;
        stopping = stopping_;
    }
    help_.notify_all();  // a calling thread may sleep there
    if (stopping) work_.notify_all();
}

}  // namespace waywiser::transfer
