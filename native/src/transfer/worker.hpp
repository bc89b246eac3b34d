// The work of one thread: takes chunks, fills, submits and drains them, and completes their jobs.
#pragma once

#include <memory>
#include <optional>

#include "transfer/batch_submission.hpp"
#include "transfer/chunk_submission.hpp"
#include "transfer/held_chunk.hpp"
#include "transfer/schedule.hpp"
#include "transfer/staging_pools.hpp"
#include "transfer/statistics.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// Used by one thread. Has no lock, and calls its parts without any held. It never waits for one
// resource while it holds another: it takes staging memory without waiting, or sleeps without any.
// Only fill() of a RingCopy waits for the GPU while it has staging memory, for a millisecond.
class Worker {
public:
    // Of an engine, which must outlive the worker.
    struct Parts {
        Schedule& schedule;
        StagingPools& staging;
        ChunkSubmission& submission;
        BatchSubmission& batches;
        Statistics& statistics;
    };
    explicit Worker(const Parts& parts) : parts_(parts) {}

    // In a thread of the engine, bound to a node (-1: to none): works until the schedule is closed
    // and all jobs have ended, or the schedule abandons them.
    void work(int node);
    // In the thread of a caller, after begin_help() of the schedule: works on one job until it has
    // reached a state, or until the deadline. Other threads take over its chunks in flight.
    void help(const std::shared_ptr<Job>& job, Job::Until until, const Deadline& deadline);

private:
    void work_until(const Job* only, Job::Until until, const Deadline& deadline);
    void poll_starts();
    bool make_progress(const Job* only);
    bool process(std::unique_ptr<HeldChunk> held);
    bool fill(HeldChunk& held);
    void go_on_with(std::unique_ptr<HeldChunk> held, bool arrived);
    void gather(std::unique_ptr<HeldChunk> held);
    bool submit_filled();
    void pass_on(std::unique_ptr<HeldChunk> held, bool arrived);
    bool reap();
    bool fill_again();
    void finish(std::unique_ptr<HeldChunk> held, bool arrived);
    void pause(bool last) const;
    void begin_staging_wait();
    void end_staging_wait();

    const Parts parts_;
    WorkerState state_;
    std::optional<Statistics::Clock::time_point> staging_wait_;  // when it began
};

}  // namespace waywiser::transfer
