// The engine of a transfer context: what all of its transfers share, and how they start and end.
//
// Its parts, each with its own lock and its own file:
//   CopyThreads       the threads
//   Schedule          which job a thread works on next; which threads sleep
//   Worker            the work of one thread
//   Ring              moves the bytes of a job; RouteQueue: what a GPU has to copy of them
//   StagingPools      pinned slots and slots on GPUs; ListStaging: tables of lists
//   EventPool, CopyStreams, PeerAccess
//   Statistics        counts what was moved
//   PoliteQueues      limits what is queued on a copy engine
//   job_end.hpp       ends a job
// A thread never waits for one resource while it holds another: it takes staging memory without
// waiting, or sleeps without any, and a ring with its memory waits for its GPU alone. So one thread
// with one slot can complete any set of transfers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/copy_streams.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/engine_options.hpp"
#include "transfer/event_pool.hpp"
#include "transfer/job.hpp"
#include "transfer/list_staging.hpp"
#include "transfer/peer_access.hpp"
#include "transfer/polite_queues.hpp"
#include "transfer/process_state.hpp"
#include "transfer/ring.hpp"
#include "transfer/schedule.hpp"
#include "transfer/staging_pools.hpp"
#include "transfer/statistics.hpp"
#include "transfer/wait.hpp"
#include "transfer/warnings.hpp"
#include "transfer/worker.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

struct FoundPolicy;
class PolicyTable;

// Thread safe.
class Engine : public std::enable_shared_from_this<Engine> {
public:
    // Starts no thread and allocates no memory before the first job. The last owner calls stop().
    // An engine that could not be stopped is never destroyed; one of a forked child neither, which
    // has none of the threads.
    static std::shared_ptr<Engine> make(Machine machine, EngineOptions options);
    static std::shared_ptr<Engine> make(Machine machine, EngineOptions options,
                                        const FoundPolicy& found);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Queues a job that starts when `after` has happened (at once without it). Throws Cancelled
    // after stop(). If the system starts no thread, the calling one does all of the work first.
    void start(const std::shared_ptr<Job>& job, std::shared_ptr<const gpu::Event> after = nullptr);
    using Until = Job::Until;
    // The same, but returns when all bytes are submitted or done; false if they are not before the
    // deadline. The calling thread also works on them. Throws what the job fails with. If the
    // system starts no thread, it is done when this returns, also after the deadline: nothing else
    // would go on with it. Once nothing has happened for 5 s since the deadline, it is cancelled.
    bool run(const std::shared_ptr<Job>& job, Until until,
             std::shared_ptr<const gpu::Event> after = nullptr, const Deadline& deadline = {});

    // Ends a job early, whose result is Cancelled then: pieces that no thread has are not moved.
    // Does nothing if the job has ended, or if all of it is submitted and the host has nothing left
    // to do. Returns at once; the job ends when the pieces that threads have are complete.
    void cancel(const std::shared_ptr<Job>& job);

    // Cancels jobs that wait for their start, completes the others and ends the threads. If no GPU
    // completes anything for some seconds, the jobs fail with MemoryInUse, and what they use stays
    // as it is for ever. False then, and in a forked child, where it does nothing. A second caller
    // returns when all has ended.
    bool stop();

    // Whether both GPUs can access each other's memory and the options allow it.
    [[nodiscard]] bool are_peers(int one, int other) const { return peers_.are_peers(one, other); }
    // Enables peer access. False if they are no peers.
    bool enable_peers(int one, int other) { return peers_.enable(one, other); }

    // Takes staging memory from the engine's pools: on the host at a node (for copies of a device),
    // or on a device. Returns nullopt while the budget is used up. Rings cannot use it until it is
    // released, so who has it must not wait for them. Throws what allocation throws.
    std::optional<Slot> host_staging(int node, int device, std::size_t bytes);
    std::optional<Slot> device_staging(int device, std::size_t bytes);
    // What has been moved since the engine was made.
    [[nodiscard]] Statistics& statistics() { return statistics_; }
    [[nodiscard]] const Statistics& statistics() const { return statistics_; }
    [[nodiscard]] const EventPool& events() const { return events_; }
    [[nodiscard]] CopyStreams& streams() { return streams_; }
    // Tables of lists that kernels move on callers' streams.
    [[nodiscard]] ListStaging& lists() { return lists_; }

    [[nodiscard]] const Machine& machine() const { return machine_; }
    [[nodiscard]] const EngineOptions& options() const { return options_; }
    // The policy within the limits of the options; nullptr: none.
    [[nodiscard]] const PolicyTable* policy() const { return policy_.get(); }
    [[nodiscard]] const std::string& policy_file() const { return policy_file_; }
    // Smaller copies are plain by the policy, or without one.
    [[nodiscard]] std::size_t plain_below() const { return plain_below_; }
    // The same of copies from or to memory of a GPU.
    [[nodiscard]] std::size_t plain_below_with_gpu() const { return plain_below_with_gpu_; }
    // Whether there is a thread, or the system starts one; true of a stopped engine, which cancels.
    [[nodiscard]] bool has_threads();
    [[nodiscard]] std::string why_no_threads() { return threads_.why_not(); }
    // Current use.
    [[nodiscard]] std::size_t threads() const { return threads_.size(); }
    [[nodiscard]] std::size_t pinned_bytes() const;
    // Staging memory on the GPU that has most, and streams.
    [[nodiscard]] std::size_t device_bytes() const { return staging_.device_bytes(); }
    [[nodiscard]] std::size_t streams_in_use() const { return streams_.size() + lists_.streams(); }
    [[nodiscard]] std::size_t jobs() const { return schedule_.jobs(); }
    // How often a thread that slept has looked for work again.
    [[nodiscard]] std::uint64_t wake_ups() const { return schedule_.wake_ups(); }
    // All warnings so far, without duplicates, in the order of their occurrence.
    [[nodiscard]] std::vector<std::string> warnings() const { return warnings_.all(); }
    // The number of their characters, with one more for each. Takes no lock.
    [[nodiscard]] std::size_t warning_bytes() const { return warnings_.bytes(); }
    // The thread in which a function of the program gets them.
    [[nodiscard]] LogThread& log() { return warnings_.log(); }

    // Throws ForkedProcess in a child of the process that made the engine.
    void check_process() const { owner_.check(); }
    [[nodiscard]] bool forked() const { return owner_.forked(); }

private:
    Engine(Machine machine, EngineOptions options, const FoundPolicy& found);
    ~Engine();
    void use_policy(const FoundPolicy& found);
    void add(const std::shared_ptr<Job>& job, std::shared_ptr<const gpu::Event> after);
    void work_alone(const std::shared_ptr<Job>& job, const Deadline& deadline);
    bool reach(const std::shared_ptr<Job>& job, Until until, const Deadline& deadline);
    std::function<bool()> patience(double seconds);
    void stop_once();
    bool abandon();

    // A part refers only to parts before it.
    const Machine machine_;
    const EngineOptions options_;
    const OwnerProcess owner_;
    Warnings warnings_;
    Statistics statistics_;
    PeerAccess peers_;
    EventPool events_;
    CopyStreams streams_;
    StagingPools staging_;
    ListStaging lists_;
    CopyThreads threads_;
    Schedule schedule_;
    PoliteQueues queues_;
    const RingResources rings_;
    std::once_flag stopping_;
    bool stopped_ = false;  // whether all has ended

    // Constant after the constructor.
    std::unique_ptr<const PolicyTable> policy_;
    std::string policy_file_;
    std::size_t plain_below_ = kPlainBelow;
    std::size_t plain_below_with_gpu_ = kPlainBelow;

    StopAtExit stop_at_exit_;
};

}  // namespace waywiser::transfer
