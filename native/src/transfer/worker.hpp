// The work of one thread: joins jobs, works on their rings, and ends them.
#pragma once

#include <memory>

#include "transfer/schedule.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

// Used by one thread. Has no lock. It never waits for staging memory while it works on a job: it
// takes some without waiting, or sleeps without any job.
class Worker {
public:
    // Of an engine, which must outlive the worker.
    explicit Worker(Schedule& schedule) : schedule_(schedule) {}

    // In a thread of the engine, bound to a node (-1: to none): works until the schedule is closed
    // and all jobs have ended, or the schedule abandons them.
    void work(int node);
    // In the thread of a caller, after begin_help() of the schedule: works on one job until it has
    // reached a state, or until the deadline.
    void help(const std::shared_ptr<Job>& job, Job::Until until, const Deadline& deadline);

private:
    void work_until(const Job* only, Job::Until until, const Deadline& deadline);
    [[nodiscard]] Step work_on(const Schedule::Joined& joined);
    void poll_starts();
    void pause() const;

    Schedule& schedule_;
    WorkerState state_;
};

}  // namespace waywiser::transfer
