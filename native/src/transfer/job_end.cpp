#include "transfer/job_end.hpp"

#include <exception>

namespace waywiser::transfer {

void announce_submitted(Schedule& schedule, Job& job) {
    job.set_submitted();
    schedule.notify_callers();
}

void complete(Schedule& schedule, Job& job) {
    try {
        const Schedule::HostWork working(schedule);
        if (!job.failed()) job.finish();
    } catch (...) {
        job.fail(std::current_exception());
    }
    job.close_rings();
    job.clear();
    schedule.remove(job);  // first, so that who sees the end does not see the job
    job.end();
    schedule.notify_callers();
}

}  // namespace waywiser::transfer
