#include "transfer/engine.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "transfer/job_end.hpp"
#include "transfer/policy.hpp"
#include "transfer/policy_file.hpp"
#include "transfer/profiler.hpp"

namespace waywiser::transfer {
namespace {

// Threads that have given up their jobs need less to return, unless the runtime does not.
constexpr double kReturningSeconds = 1;
// For so long a thread waits for the GPU before it looks for other work.
constexpr double kStaySeconds = 1e-3;
constexpr double kStayOfSleepers = 20e-6;  // threads that sleep between copies
constexpr Polling kJoining{.spin = std::chrono::nanoseconds(0),
                           .pause = std::chrono::nanoseconds(0),
                           .sleep = CopyThreads::kJoinStep};

}  // namespace

std::shared_ptr<Engine> Engine::make(Machine machine, EngineOptions options) {
    return make(std::move(machine), std::move(options), FoundPolicy{});
}

std::shared_ptr<Engine> Engine::make(Machine machine, EngineOptions options,
                                     const FoundPolicy& found) {
    return {new Engine(std::move(machine), std::move(options), found), [](Engine* engine) {
                if (engine->stop()) {
                    delete engine;
                } else {
                    keep_for_ever(engine);
                }
            }};
}

// The callbacks are called when all parts exist: by threads, which start with the first job, and by
// pools that are in use.
Engine::Engine(Machine machine, EngineOptions options, const FoundPolicy& found)
    : machine_(std::move(machine)),
      options_(completed(std::move(options))),
      warnings_(options_.report_warnings, options_.log, options_.cpus),
      peers_(machine_, options_.peer_access),
      staging_(machine_, options_, warnings_, statistics_, [this] { schedule_.wake_all(); }),
      lists_(list_table_bytes(options_), staging_, events_,
             [this](const std::string& why) { staging_.report_unpinned(why); }),
      // A calling thread works too.
      threads_(machine_, options_.cpus, std::max<std::size_t>(options_.threads, 2) - 1,
               [this](int node) { Worker(schedule_).work(node); }),
      schedule_(threads_, options_.threads, threads_.nodes(), options_.spin_seconds),
      queues_(options_.max_queued_bytes),
      rings_{.staging = staging_,
             .events = events_,
             .streams = streams_,
             .queues = queues_,
             .schedule = schedule_,
             .stay_seconds = options_.spin_seconds > 0 ? kStaySeconds : kStayOfSleepers},
      stop_at_exit_([this] {
          if (forked()) return;
          warnings_.log().leave();  // what its function uses may not exist any more
          stop();
      }) {
    find_profiler();
    plain_below_ = plain_below_with_gpu_ = least_chunked(options_);
    if (!found.warning.empty()) warnings_.add(found.warning);
    if (found.policy && !options_.plain) use_policy(found);
}

Engine::~Engine() = default;

void Engine::use_policy(const FoundPolicy& found) {
    const PolicyLimits limits{.threads = options_.threads,
                              .relays = options_.relays,
                              .host_slot = staging_.host_slot_bytes(),
                              .relay_slot = staging_.device_slot_bytes(),
                              .max_queued_bytes = options_.max_queued_bytes,
                              .multiprocessors = options_.list_multiprocessors};
    policy_ = std::make_unique<const PolicyTable>(found.policy, limits);
    policy_file_ = found.file;
    plain_below_ = policy_->plain_below(least_chunked(options_));
    plain_below_with_gpu_ = policy_->plain_below(least_chunked(options_), true);
}

std::size_t Engine::pinned_bytes() const { return lists_.pinned_bytes() + staging_.pinned_bytes(); }

std::optional<Slot> Engine::host_staging(int node, int device, std::size_t bytes) {
    return staging_.host(node, device).take(bytes);
}

std::optional<Slot> Engine::device_staging(int device, std::size_t bytes) {
    return staging_.on_device(device).take(bytes);
}

bool Engine::has_threads() {
    if (threads_.size() == 0) threads_.spawn(1);
    return threads_.size() > 0 || threads_.why_not().empty();
}

void Engine::add(const std::shared_ptr<Job>& job, std::shared_ptr<const gpu::Event> after) {
    check_process();
    threads_.spawn(std::max<std::size_t>(job->pieces(), 1));
    job->count_in(statistics_);
    job->open(rings_, std::move(after));
    if (!job->waits()) job->start_early();
    if (!schedule_.add(job)) complete(schedule_, *job);
}

// With the calling thread, if it may work too.
bool Engine::reach(const std::shared_ptr<Job>& job, Until until, const Deadline& deadline) {
    if (schedule_.begin_help()) Worker(schedule_).help(job, until, deadline);
    return job->wait_until(until, deadline);
}

// Without any thread of the engine. When this returns, the job has ended, or a GPU does not answer.
void Engine::work_alone(const std::shared_ptr<Job>& job, const Deadline& deadline) {
    bool ended = reach(job, Until::done, deadline);
    for (bool goes_on = true; !ended && goes_on;) {
        const std::uint64_t known = schedule_.progress();
        ended = reach(job, Until::done, Deadline(options_.unresponsive_seconds));
        goes_on = schedule_.progress() != known;
    }
    if (ended) return;
    auto why = std::make_exception_ptr(NotSupported(
        "the transfer has made no progress for 5 s, and nothing would go on with it: " +
        threads_.why_not()));
    if (schedule_.cancel(job, std::move(why))) complete(schedule_, *job);
    if (!job->done()) job->keep_in_use();
}

void Engine::start(const std::shared_ptr<Job>& job, std::shared_ptr<const gpu::Event> after) {
    add(job, std::move(after));
    if (threads_.size() == 0) work_alone(job, Deadline(options_.unresponsive_seconds));
}

bool Engine::run(const std::shared_ptr<Job>& job, Until until,
                 std::shared_ptr<const gpu::Event> after, const Deadline& deadline) {
    add(job, std::move(after));
    if (threads_.size() == 0) {
        work_alone(job, deadline);
        if (!job->done()) throw MemoryInUse("a GPU has completed nothing for 5 s");
    } else if (!reach(job, until, deadline)) {
        return false;
    }
    job->rethrow();
    return true;
}

void Engine::cancel(const std::shared_ptr<Job>& job) {
    check_process();
    auto why = std::make_exception_ptr(Cancelled("the transfer was cancelled by its program"));
    if (schedule_.cancel(job, std::move(why))) complete(schedule_, *job);
}

bool Engine::stop() {
    if (forked()) return false;
    std::call_once(stopping_, [this] { stop_once(); });
    return stopped_;
}

void Engine::stop_once() {
    const auto why = std::make_exception_ptr(
        Cancelled("the transfer context was closed before the transfer started"));
    for (const auto& job : schedule_.close(why)) complete(schedule_, *job);
    const bool alone = threads_.size() == 0;
    const auto goes_on = patience(options_.unresponsive_seconds);
    bool ended = threads_.join(goes_on);
    if (ended && alone) {  // callers work on them
        const auto end = [&] { return schedule_.jobs() == 0 || !(ended = goes_on()); };
        poll(end, Deadline(), kJoining);
    }
    ended = ended || abandon();
    stopped_ = lists_.stop(Deadline(ended ? options_.unresponsive_seconds : 0)) && ended;
    if (ended && !stopped_) {
        warnings_.add(
            "lists in streams of the program have not ended within 5 s after their transfer "
            "context "
            "was closed: their staging memory stays allocated");
    }
}

// Whether transfers go on, for a caller that asks each CopyThreads::kJoinStep: false once nothing
// has changed for so long. Counted in steps, so that a process that was halted is not taken for one
// whose GPU does not answer.
std::function<bool()> Engine::patience(double seconds) {
    const auto most = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(seconds));
    return
        [this, most, waited = std::chrono::nanoseconds(0), known = schedule_.progress()]() mutable {
            const std::uint64_t now = schedule_.progress();
            waited = now != known || schedule_.works_on_host() ? std::chrono::nanoseconds(0)
                                                               : waited + CopyThreads::kJoinStep;
            known = now;
            return waited < most;
        };
}

// Gives up all transfers. False: what they use must stay as it is.
bool Engine::abandon() {
    const auto left = schedule_.abandon();
    for (const auto& job : left) {
        job->keep_in_use();
        job->fail(std::make_exception_ptr(MemoryInUse(
            "the transfer context was closed, and no GPU has completed anything for 5 s")));
        job->end();
    }
    schedule_.notify_callers();
    if (!threads_.join(patience(kReturningSeconds))) threads_.detach();
    warnings_.add("a GPU has completed nothing for 5 s after a transfer context was closed: " +
                  std::to_string(left.size()) +
                  " transfers were given up; their memory must not be freed, and " +
                  std::to_string(pinned_bytes() >> 20) +
                  " MiB of staging memory stay allocated (nvidia-smi shows whether the GPU works)");
    return false;
}

}  // namespace waywiser::transfer
