// The threads, streams and staging memory that all transfers of a context share.
//
// A thread holds at most a few chunks at a time. It never waits for one resource while it holds
// another: it takes staging memory without waiting, or sleeps without any. So one thread with one
// slot can complete any set of transfers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "host/spinning_mutex.hpp"
#include "transfer/job.hpp"
#include "transfer/list_staging.hpp"
#include "transfer/staging.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

struct FoundPolicy;
class PolicyTable;

// Smaller copies are faster by the runtime alone: waking threads takes longer than they gain
// (measured on H200 with 16 CPUs, docs/transfer.md).
inline constexpr std::size_t kPlainBelow = std::size_t{8} << 20;

struct EngineOptions {
    std::size_t threads = 0;       // 0: thread_limit()
    std::size_t pinned_bytes = 0;  // 0: 16 MiB for each thread; capped by pinned_limit()
    std::vector<int> relays;       // GPUs whose links may be used too, in this order
    std::size_t relay_bytes = 0;   // staging memory on each of them; 0: 64 MiB
    std::size_t polite_bytes = 0;  // limit of bytes queued on a copy engine; 0: none
    // For a list of short pieces over a GPU's link. 0: what the policy says, one without.
    unsigned list_multiprocessors = 0;
    bool plain = false;            // only plain copies of the runtime
    bool peer_access = true;       // may enable peer access between the GPUs of a copy
    bool report_warnings = false;  // writes each warning to stderr, once per process
};

class Engine {
public:
    // Starts no thread and allocates no memory before the first job.
    Engine(Machine machine, EngineOptions options);
    Engine(Machine machine, EngineOptions options, const FoundPolicy& found);
    // Calls stop(). A forked child must not destroy it: the child has none of the threads.
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Queues a job that starts when `after` has happened (at once without it). Throws Cancelled
    // after stop(), and the system's error if not even one thread can be created.
    void start(const std::shared_ptr<Job>& job, std::optional<gpu::Event> after = std::nullopt);
    // The same with a shared event.
    void start(const std::shared_ptr<Job>& job, std::shared_ptr<const gpu::Event> after);
    enum class Until { submitted, done };
    // The same, but returns when all chunks are submitted or done. The calling thread also works on
    // them. Throws what the job fails with.
    void run(const std::shared_ptr<Job>& job, Until until,
             std::optional<gpu::Event> after = std::nullopt);

    // Cancels jobs that wait for their start, completes the others and ends the threads. Does
    // nothing in a forked child.
    void stop();

    // Whether both GPUs can access each other's memory and the options allow it.
    [[nodiscard]] bool are_peers(int one, int other) const;
    // Enables peer access. False if they are no peers.
    bool enable_peers(int one, int other);

    // Takes staging memory from the engine's pools for other users than jobs: on the host at a node
    // (for copies of a device), or on a device. Returns nullopt while the budget is used up. Jobs
    // cannot use it until it is released. Throws what allocation throws.
    std::optional<Slot> host_staging(int node, int device, std::size_t bytes);
    std::optional<Slot> device_staging(int device, std::size_t bytes);
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
    // Current use.
    [[nodiscard]] std::size_t threads() const;
    [[nodiscard]] std::size_t pinned_bytes() const;
    [[nodiscard]] std::size_t jobs() const;
    // All warnings so far, without duplicates, in the order of their occurrence.
    [[nodiscard]] std::vector<std::string> warnings() const;
    // The number of their characters, with one more for each. Takes no lock.
    [[nodiscard]] std::size_t warning_bytes() const { return warning_bytes_; }

    // Throws ForkedProcess in a child of the process that made the engine.
    void check_process() const;
    [[nodiscard]] bool forked() const;

private:
    struct Held;
    struct Worker;
    using Lane = std::pair<int, Direction>;

    void spawn(std::size_t wanted);
    void work(Worker& self, const std::shared_ptr<Job>& only, Until until);
    [[nodiscard]] static bool leaves(const Job& only, Until until);
    [[nodiscard]] bool ends(const Worker& self) const;
    bool reap(Worker& self);
    std::unique_ptr<Held> claim(Worker& self, const Job* only, std::size_t& waking);
    static void leave_jobs(Worker& self, bool (*leaves)(const Job&));
    [[nodiscard]] static std::optional<std::size_t> free_route(const Job& job);
    [[nodiscard]] static bool exhausted(const Job& job);
    [[nodiscard]] std::size_t next_chunk(const Job& job) const;
    bool process(Worker& self, std::unique_ptr<Held> held);
    [[nodiscard]] bool take_staging(Held& held);
    bool enter_queue(Held& held);
    void line_up(Held& held);
    void leave_queue(Held& held);
    static void settle(Chunk& chunk);
    void submit(Held& held);
    bool submit_filled(Worker& self);
    void gather(Worker& self, std::unique_ptr<Held> held);
    void submit_gathered(Job& job, std::size_t route);
    void end_batches(Job& job, std::size_t index);
    bool submit_batch(Job& job, std::size_t index, std::size_t& left);
    bool batch_ended(Held& held, bool& arrived);
    void pass_on(Worker& self, std::unique_ptr<Held> held, bool arrived);
    void hand_back(Held& held);
    void finish(Worker& self, std::unique_ptr<Held> held, bool arrived);
    static void leave_route(Job& job, const Chunk& chunk);
    void all_submitted(Job& job);
    static void fail(Job& job, std::exception_ptr why);
    void complete(const std::shared_ptr<Job>& job);
    void poll_starts();
    static void nap(const Worker& self, bool last);
    void notify_work();
    [[nodiscard]] std::size_t threads_of_a_node() const;
    [[nodiscard]] std::size_t sleepers_to_wake();
    void wake(std::size_t threads);
    void wake_some();
    [[nodiscard]] bool starts_unwatched() const;
    void warn(const std::string& message);
    [[nodiscard]] NumaNode usable_node(int node) const;
    [[nodiscard]] std::size_t usable_nodes() const;
    [[nodiscard]] std::size_t host_staging_bytes() const;
    void warn_of_pinning(const std::string& why);

    gpu::Stream& stream(int device, Direction direction);
    gpu::Event take_event(int device);
    void keep_event(int device, gpu::Event event);
    Slots& slots(int node, int device);
    Slots& bounces(int device);

    const Machine machine_;
    const EngineOptions options_;
    const unsigned process_;

    mutable host::SpinningMutex mutex_;
    std::condition_variable work_;  // the engine's threads wait on it
    std::condition_variable help_;  // a calling thread waits on it
    std::uint64_t generation_ = 0;  // counts changes of the available work
    std::size_t sleeping_ = 0;
    std::size_t woken_ = 0;                       // sleeping threads that are being woken
    std::list<std::shared_ptr<Job>> waiting_;     // jobs that have not started
    std::deque<std::shared_ptr<Job>> ready_;      // jobs with chunks that no thread has taken
    std::vector<std::unique_ptr<Held>> orphans_;  // chunks whose thread has left
    struct Queue {
        std::size_t bytes = 0;
        std::deque<Held*> chunks;  // in the order of the stream
    };
    std::map<Lane, Queue> queued_;  // on copy engines, if that is limited
    std::size_t jobs_ = 0;
    bool stopping_ = false;
    bool helping_ = false;  // a calling thread works
    bool polling_ = false;  // a thread polls the start events
    std::vector<std::thread> threads_;
    std::mutex ending_;  // held by the thread that stops the engine

    mutable host::SpinningMutex resources_;
    std::map<Lane, gpu::Stream> streams_;
    std::map<int, std::vector<gpu::Event>> events_;
    std::map<std::pair<int, bool>, std::unique_ptr<Slots>> slots_;  // by node, pinned or not
    std::map<int, std::unique_ptr<Slots>> bounces_;
    std::set<std::pair<int, int>> peers_;
    std::vector<std::string> warnings_;
    std::atomic<std::size_t> warning_bytes_{0};
    ListStaging lists_;
    std::atomic<bool> unpinned_{false};  // some staging could not be pinned
    int pinning_device_ = -1;            // the GPU in whose context memory is pinned

    std::unique_ptr<const PolicyTable> policy_;
    std::string policy_file_;
    std::size_t plain_below_ = kPlainBelow;
    std::size_t plain_below_with_gpu_ = kPlainBelow;
};

// A child process uses an engine of its parent.
class ForkedProcess : public std::runtime_error {
public:
    ForkedProcess()
        : std::runtime_error(
              "this process was forked from the one that made the transfer context: make a context "
              "of its own here (with CUDA, start processes by spawn instead of fork)") {}
};

}  // namespace waywiser::transfer
