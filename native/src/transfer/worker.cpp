#include "transfer/worker.hpp"

#include <chrono>
#include <exception>
#include <thread>

#include "transfer/job_end.hpp"

namespace waywiser::transfer {
namespace {

// Between two looks at jobs for which the GPU has to copy first. 2 MiB take 40 us on a PCIe 5.0
// link.
constexpr auto kPause = std::chrono::microseconds(10);

}  // namespace

void Worker::work(int node) {
    state_.node = node;
    work_until(nullptr, Job::Until::done, {});
    schedule_.stop_working(state_);
}

void Worker::help(const std::shared_ptr<Job>& job, Job::Until until, const Deadline& deadline) {
    state_.caller = true;
    state_.last_work = std::chrono::steady_clock::now();  // from then on it waits for its job
    work_until(job.get(), until, deadline);
    schedule_.stop_working(state_);
}

// `only`: the one job that it works on, if not null. A thread pauses when it has looked at all jobs
// in vain.
void Worker::work_until(const Job* only, Job::Until until, const Deadline& deadline) {
    std::size_t in_vain = 0;  // jobs in a row that wait for a GPU
    for (;;) {
        const Schedule::View now = schedule_.view(state_);
        if (only == nullptr ? now.ends : only->reached(until)) return;
        if (now.abandons || deadline.is_over()) return;
        if (now.starts) poll_starts();
        const Schedule::Joined joined = schedule_.join(state_, only);
        if (!joined.job) {
            schedule_.sleep(state_, now.generation, only, deadline);
            in_vain = 0;
            continue;
        }
        Step step = work_on(joined);
        // Joining it again and again would hold up the others at the lock.
        while (step == Step::awaits && !schedule_.needs_threads() &&
               (only == nullptr || !(only->reached(until) || deadline.is_over()))) {
            pause();
            step = work_on(joined);
        }
        if (schedule_.leave(state_, joined, step, now.generation)) complete(schedule_, *joined.job);
        in_vain = step == Step::awaits ? in_vain + 1 : 0;
        if (in_vain > 0 && (only != nullptr || in_vain >= schedule_.jobs())) {
            pause();
            in_vain = 0;
        }
    }
}

Step Worker::work_on(const Schedule::Joined& joined) {
    try {
        return joined.job->work(joined.seat);
    } catch (...) {
        joined.job->fail(std::current_exception());
        return Step::nothing;
    }
}

void Worker::poll_starts() {
    for (const auto& job : schedule_.poll_starts()) complete(schedule_, *job);
}

// A caller does not sleep: it yields, as the runtime does while it waits for a stream. Nor do
// threads that stay awake: they have spun before.
void Worker::pause() const {
    if (!state_.caller) return std::this_thread::sleep_for(kPause);
    const auto end = std::chrono::steady_clock::now() + kPause;
    do {
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
}

}  // namespace waywiser::transfer
