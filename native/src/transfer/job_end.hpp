// Reports to those who wait for a job how far it is. Called without any lock.
#pragma once

#include <memory>

#include "transfer/job.hpp"
#include "transfer/schedule.hpp"

namespace waywiser::transfer {

// The last chunk of the job is submitted, or has ended without.
void announce_submitted(Schedule& schedule, Job& job);
// The last chunk of the job is complete, or the job ends without any: finishes the job, counts it
// as ended, and wakes those who wait for it.
void complete(Schedule& schedule, Job& job);

}  // namespace waywiser::transfer
