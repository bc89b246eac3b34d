// Which job a thread works on next, and which threads sleep until there is one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "host/spinning_mutex.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/job.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// A working thread. Only the thread itself uses this, also in calls of the Schedule.
struct WorkerState {
    bool caller = false;                              // the thread of a program that waits
    int node = -1;                                    // to which it is bound
    std::chrono::steady_clock::time_point last_work;  // when it joined a job
    bool spinning = false;                            // see Schedule::spinning_
};

// Thread safe. Its lock guards all of its members. With it held, the start events of jobs are
// queried, and the lock of a job may be taken; no other lock is, and no thread waits for anything
// else.
class Schedule {
public:
    // Threads sleep here; `most_threads` includes a calling thread that works. `nodes`: NUMA nodes
    // over which threads are spread. After its last job a thread spins for `spin_seconds` before it
    // sleeps. The threads must outlive this.
    Schedule(const CopyThreads& threads, std::size_t most_threads, std::size_t nodes,
             double spin_seconds = 0);

    // --- jobs

    // Adds a job, which starts when its event has happened. False if it has to be ended instead: it
    // has no bytes or has failed. Throws Cancelled after close().
    [[nodiscard]] bool add(const std::shared_ptr<Job>& job);
    // Lets jobs start whose event has happened. Returns those that have to be ended instead.
    std::vector<std::shared_ptr<Job>> poll_starts();
    // The job has ended.
    void remove(const Job& job);
    // Cancels a job (see Job::cancel()). True if the caller has to end it: no thread works on it,
    // and no GPU.
    [[nodiscard]] bool cancel(const std::shared_ptr<Job>& job, std::exception_ptr why);
    // Jobs that were added and not removed.
    [[nodiscard]] std::size_t jobs() const;
    // Ends the threads when all jobs have ended. Jobs that wait for their start fail with `why`:
    // returns them, to be ended.
    std::vector<std::shared_ptr<Job>> close(const std::exception_ptr& why);
    // After close(): threads leave their jobs as they are. Returns the jobs that have not ended,
    // which stay here for ever.
    std::vector<std::shared_ptr<Job>> abandon();

    // Says when its thread works on the host for a transfer: no GPU can delay it then.
    class HostWork {
    public:
        explicit HostWork(Schedule& schedule, bool works = true)
            : threads_(schedule.on_host_), works_(works) {
            if (works) ++threads_;
        }
        ~HostWork() { stop(); }
        void start() {
            if (!std::exchange(works_, true)) ++threads_;
        }
        void stop() {
            if (std::exchange(works_, false)) --threads_;
        }
        HostWork(const HostWork&) = delete;
        HostWork& operator=(const HostWork&) = delete;

    private:
        std::atomic<std::size_t>& threads_;
        bool works_;
    };
    // Whether a thread works on the host now.
    [[nodiscard]] bool works_on_host() const { return on_host_ != 0; }
    // How often a thread that slept has looked for work again.
    [[nodiscard]] std::uint64_t wake_ups() const { return wake_ups_; }
    // Changes whenever a job has made progress.
    [[nodiscard]] std::uint64_t progress() const { return progress_; }
    void note_progress() { progress_.fetch_add(1, std::memory_order_relaxed); }

    // --- work

    // A job that a thread has joined.
    struct Joined {
        std::shared_ptr<Job> job;  // nullptr: there is none for this thread
        std::size_t seat = 0;      // see Job::work()
    };
    // Joins the next job that can use a thread (the job `only`, if not null), and wakes threads for
    // more. The others come first afterwards.
    Joined join(WorkerState& self, const Job* only);
    // The thread has stopped to work on the job. True if it has to end it. `generation`: that of
    // the view before it joined.
    [[nodiscard]] bool leave(const WorkerState& self, const Joined& joined, Step step,
                             std::uint64_t generation);
    // Whether a job that could be worked on has no thread. Takes no lock.
    [[nodiscard]] bool has_unserved() const {
        return unserved_.load(std::memory_order_relaxed) != 0;
    }
    // Whether a thread that waits for a GPU has to look at other jobs. Takes no lock.
    [[nodiscard]] bool needs_threads() const {
        return has_unserved() || waiting_.load(std::memory_order_relaxed) != 0 ||
               abandoned_.load(std::memory_order_relaxed);
    }

    // --- threads

    struct View {
        std::uint64_t generation = 0;  // for sleep() and leave()
        bool starts = false;           // some jobs wait for their start
        bool ends = false;             // after close(): nothing is left to do for this thread
        bool abandons = false;         // after abandon()
    };
    [[nodiscard]] View view(const WorkerState& self) const;
    // Threads that spin, and that sleep.
    [[nodiscard]] std::size_t spinning() const { return spinning_; }
    [[nodiscard]] std::size_t sleeping() const;
    // Whether threads spin for a while before they sleep.
    [[nodiscard]] bool spins() const { return spin_ > std::chrono::nanoseconds(0); }
    // Sleeps until there may be work, unless that was so since the view.
    // A calling thread that works on `only` returns when that has ended, or at the deadline, too.
    void sleep(WorkerState& self, std::uint64_t generation, const Job* only,
               const Deadline& deadline);
    // A calling thread may work too, if no other does and the threads are too few; any number of
    // them if there is no thread.
    bool begin_help();
    // A thread stops working: other threads take over the polling of starts.
    void stop_working(WorkerState& self);

    // Wakes all threads. Used for rare changes: an end, staging that others wait for.
    void wake_all();
    // Wakes some threads: there is new work.
    void wake_some();
    // Wakes a calling thread that works, since its job may have reached what it waits for.
    void notify_callers();

private:
    struct Entry {
        std::shared_ptr<Job> job;
        bool waits = false;          // for its start
        std::size_t threads = 0;     // that work on it
        std::size_t joined = 0;      // that have joined it
        bool has_no_memory = false;  // until some is given back
        bool is_unserved = false;    // counted among these
    };
    using Entries = std::list<Entry>;

    [[nodiscard]] Entries::iterator find(const Job& job);
    void begin(Entry& entry);
    void count(Entry& entry);
    void stop_spinning(WorkerState& self);
    bool spin(WorkerState& self, std::uint64_t generation, const Job* only,
              const Deadline& deadline);
    [[nodiscard]] std::uint64_t generation(const WorkerState& self) const;
    [[nodiscard]] bool may_join(const WorkerState& self, const Entry& entry) const;
    [[nodiscard]] std::size_t threads_of_a_node() const;
    [[nodiscard]] std::size_t useful_threads(std::size_t enough) const;
    [[nodiscard]] std::size_t sleepers_to_wake();
    void wake(std::size_t threads);
    [[nodiscard]] bool has_no_threads() const { return threads_.size() == 0; }
    [[nodiscard]] bool starts_unwatched() const { return waiting_ != 0 && !polling_; }

    const CopyThreads& threads_;
    const std::size_t most_threads_;
    const std::size_t nodes_;
    const std::chrono::nanoseconds spin_;

    mutable host::SpinningMutex mutex_;
    std::condition_variable work_;  // the engine's threads wait on it
    std::condition_variable help_;  // a calling thread waits on it
    // Counts changes of the available work. Written with the lock held; who spins reads it without.
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<std::uint64_t> caller_generation_{0};  // of what only a calling thread waits for
    // Threads that look for work without sleeping. A thread that has found a change is one of them
    // until it joins a job: otherwise others would be woken in its place.
    std::atomic<std::size_t> spinning_{0};
    std::atomic<std::size_t> unserved_{0};       // jobs that could be worked on and have no thread
    std::atomic<std::size_t> most_spinning_{0};  // of these: no more could work on the last job
    std::size_t sleeping_ = 0;
    std::size_t woken_ = 0;                // sleeping threads that are being woken
    Entries jobs_;                         // that were added and have not ended
    std::atomic<std::size_t> waiting_{0};  // of these, for their start
    bool stopping_ = false;
    std::atomic<bool> abandoned_{false};
    std::size_t helping_ = 0;  // calling threads that work
    bool polling_ = false;     // a thread polls the start events
    std::atomic<std::size_t> on_host_{0};
    std::atomic<std::uint64_t> progress_{0};
    std::atomic<std::uint64_t> wake_ups_{0};
};

}  // namespace waywiser::transfer
