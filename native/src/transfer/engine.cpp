#include "transfer/engine.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "transfer/completion.hpp"
#include "transfer/policy.hpp"
#include "transfer/policy_file.hpp"

namespace waywiser::transfer {

Engine::Engine(Machine machine, EngineOptions options)
    : Engine(std::move(machine), std::move(options), FoundPolicy{}) {}

// The callbacks are called when all parts exist: by threads, which start with the first job, and by
// pools that are in use.
Engine::Engine(Machine machine, EngineOptions options, const FoundPolicy& found)
    : machine_(std::move(machine)),
      options_(completed(std::move(options))),
      warnings_(options_.report_warnings),
      peers_(machine_, options_.peer_access),
      staging_(machine_, options_, warnings_, [this] { schedule_.wake_all(); }),
      lists_(list_table_bytes(options_), staging_.usable_node(-1), events_,
             [this](const std::string& why) { staging_.report_unpinned(why); }),
      // A calling thread works too.
      threads_(machine_, std::max<std::size_t>(options_.threads, 2) - 1,
               [this](int node) { Worker(parts_).work(node); }),
      schedule_(threads_, options_.threads, machine_.numa.size(), options_.awake_seconds),
      submission_(events_, streams_, options_.polite_bytes),
      batches_(schedule_, events_, streams_, staging_),
      parts_{.schedule = schedule_,
             .staging = staging_,
             .submission = submission_,
             .batches = batches_},
      stop_at_exit_([this] { stop(); }) {
    plain_below_ = plain_below_with_gpu_ = least_chunked(options_);
    if (!found.warning.empty()) warnings_.add(found.warning);
    if (found.policy && !options_.plain) use_policy(found);
}

Engine::~Engine() { stop(); }

void Engine::use_policy(const FoundPolicy& found) {
    const PolicyLimits limits{.threads = options_.threads,
                              .relays = options_.relays,
                              .host_slot = staging_.host_slot_bytes(),
                              .relay_slot = staging_.device_slot_bytes(),
                              .polite_bytes = options_.polite_bytes,
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

void Engine::start(const std::shared_ptr<Job>& job, std::optional<gpu::Event> after) {
    std::shared_ptr<const gpu::Event> event;
    if (after) event = std::make_shared<const gpu::Event>(std::move(*after));
    start(job, std::move(event));
}

void Engine::start(const std::shared_ptr<Job>& job, std::shared_ptr<const gpu::Event> after) {
    check_process();
    const bool ends = after == nullptr && job->bytes() == 0;
    threads_.spawn(std::max<std::size_t>(job->chunks(), 1));
    job->open(std::move(after));
    schedule_.add(job);
    if (ends) complete(schedule_, *job);
}

void Engine::run(const std::shared_ptr<Job>& job, Until until, std::optional<gpu::Event> after) {
    start(job, std::move(after));
    if (schedule_.begin_help()) Worker(parts_).help(job, until);
    job->wait_until(until);
    job->rethrow();
}

void Engine::stop() {
    if (forked()) return;
    const std::lock_guard once(stopping_);
    for (const auto& job : schedule_.close()) {
        job->fail(std::make_exception_ptr(
            Cancelled("the transfer context was closed before the transfer started")));
        complete(schedule_, *job);
    }
    threads_.join();
    lists_.stop();
}

}  // namespace waywiser::transfer
