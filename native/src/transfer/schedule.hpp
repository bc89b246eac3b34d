// Which chunk a thread takes next, and which threads sleep until there is one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "host/spinning_mutex.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/held_chunk.hpp"
#include "transfer/job.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards all of its members and the ChunkSupply of each job that was added.
// With it held, the start events of jobs are queried, and the lock of a job may be taken; no other
// lock is, and no thread waits for anything else.
class Schedule {
public:
    // Threads sleep here; `most_threads` includes a calling thread that works. `nodes`: NUMA nodes
    // over which threads are spread. After its last chunk a thread spins for `spin_seconds` before
    // it sleeps. The threads must outlive this.
    Schedule(const CopyThreads& threads, std::size_t most_threads, std::size_t nodes,
             double spin_seconds = 0);

    // --- jobs

    // Adds a job, which starts when its supply does. False if it has to be completed instead: it
    // has no chunk to take, because it has no bytes or has failed. Throws Cancelled after close().
    [[nodiscard]] bool add(const std::shared_ptr<Job>& job);
    // Lets jobs start whose event has happened. Returns those that have to be completed instead.
    std::vector<std::shared_ptr<Job>> poll_starts();
    // The job has ended.
    void remove(const Job& job);
    // Cancels a job (see Job::cancel()), whose chunks are only completed from now on. True if the
    // caller has to complete it: no thread has one of its chunks.
    [[nodiscard]] bool cancel(const std::shared_ptr<Job>& job, std::exception_ptr why);
    // Jobs that were added and not removed.
    [[nodiscard]] std::size_t jobs() const;
    // Ends the threads when all jobs have ended. Returns those that wait for their start: they have
    // to be cancelled.
    std::list<std::shared_ptr<Job>> close();
    // After close(): threads leave their chunks as they are. Returns the jobs that have not ended,
    // which stay here for ever.
    std::vector<std::shared_ptr<Job>> abandon();

    // As long as this lives, its thread works on the host for a transfer: no GPU can delay it.
    class HostWork {
    public:
        explicit HostWork(Schedule& schedule, bool is_so = true)
            : working_(is_so ? &schedule.on_host_ : nullptr) {
            if (working_ != nullptr) ++*working_;
        }
        ~HostWork() {
            if (working_ != nullptr) --*working_;
        }
        HostWork(const HostWork&) = delete;
        HostWork& operator=(const HostWork&) = delete;

    private:
        std::atomic<std::size_t>* working_;
    };
    // Whether a thread works on the host now.
    [[nodiscard]] bool works_on_host() const { return on_host_ != 0; }
    // How often a thread that slept has looked for work again.
    [[nodiscard]] std::uint64_t wake_ups() const { return wake_ups_; }
    // Changes whenever a chunk is taken, submitted or complete, and when a job says so.
    [[nodiscard]] std::uint64_t progress() const { return progress_; }
    void note_progress() { ++progress_; }

    // --- chunks

    // Takes the next chunk (of the job `only`, if not null), and wakes threads for more. Nullptr if
    // there is none for this thread. An engine's thread, or a calling one if there is none, may get
    // a chunk that another has left, too.
    std::unique_ptr<HeldChunk> claim(WorkerState& self, const Job* only);
    // The chunk got no staging memory: another thread takes it later, after those of other jobs.
    void put_back(const HeldChunk& held);
    // Jobs with chunks that no thread has taken.
    [[nodiscard]] std::size_t ready_jobs() const;
    // So many chunks of the job are submitted, or have ended without. True if this was the last
    // one.
    bool submitted(Job& job, std::size_t chunks);
    enum class Next { go_on, complete_job, wake_all };
    // A chunk is complete. What is to be done when its resources are free: nothing, completing the
    // job, or waking threads that wait for a free route.
    Next completed(const WorkerState& self, const HeldChunk& held);
    // Whether no chunk is left to take now.
    [[nodiscard]] bool exhausted(const Job& job) const;

    // --- threads

    struct View {
        std::uint64_t generation = 0;  // for sleep()
        bool starts = false;           // some jobs wait for their start
        bool last = false;             // no chunk of `only` is left to take
        bool ends = false;             // after close(): nothing is left to do for this thread
        bool abandons = false;         // after abandon()
    };
    [[nodiscard]] View view(const WorkerState& self, const Job* only) const;
    // Whether threads spin for a while before they sleep.
    [[nodiscard]] bool spins() const { return spin_ > std::chrono::nanoseconds(0); }
    // Sleeps until there may be work, unless that was so since the view.
    // A calling thread that works on `only` returns when that has ended, or at the deadline, too.
    void sleep(const WorkerState& self, std::uint64_t generation, const Job* only,
               const Deadline& deadline);
    // A calling thread may work too, if no other does and the threads are too few; any number of
    // them if there is no thread.
    bool begin_help();
    // A thread stops working: other threads take over its chunks and the polling of starts.
    void leave(WorkerState& self);

    // Wakes all threads. Used for rare changes: an end, staging that others wait for.
    void wake_all();
    // Wakes some threads: there is new work.
    void wake_some();
    // Wakes a calling thread that works, since its job may have reached what it waits for.
    void notify_callers();

private:
    bool spin(const WorkerState& self, std::uint64_t generation, const Job* only,
              const Deadline& deadline);
    [[nodiscard]] std::uint64_t generation(const WorkerState& self) const;
    [[nodiscard]] bool may_take(const WorkerState& self, const Job& job) const;
    std::unique_ptr<HeldChunk> take(WorkerState& self, const std::shared_ptr<Job>& job);
    static void leave_jobs(WorkerState& self, bool all);
    [[nodiscard]] std::size_t threads_of_a_node() const;
    [[nodiscard]] std::size_t useful_threads() const;
    [[nodiscard]] std::size_t sleepers_to_wake();
    void wake(std::size_t threads);
    [[nodiscard]] bool has_no_threads() const { return threads_.size() == 0; }
    [[nodiscard]] bool starts_unwatched() const { return !waiting_.empty() && !polling_; }

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
    std::atomic<std::size_t> spinning_{0};  // threads that look for work without sleeping
    std::size_t sleeping_ = 0;
    std::size_t woken_ = 0;                            // sleeping threads that are being woken
    std::list<std::shared_ptr<Job>> waiting_;          // jobs that have not started
    std::deque<std::shared_ptr<Job>> ready_;           // jobs with chunks that no thread has taken
    std::vector<std::unique_ptr<HeldChunk>> orphans_;  // chunks whose thread has left
    std::vector<std::shared_ptr<Job>> jobs_;           // that were added and have not ended
    bool stopping_ = false;
    bool abandoned_ = false;
    std::size_t helping_ = 0;  // calling threads that work
    bool polling_ = false;     // a thread polls the start events
    std::atomic<std::size_t> on_host_{0};
    std::atomic<std::uint64_t> progress_{0};
    std::atomic<std::uint64_t> wake_ups_{0};
};

}  // namespace waywiser::transfer
