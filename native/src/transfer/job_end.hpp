// Reports to those who wait for a job how far it is. Called without any lock.
#pragma once

#include <memory>

#include "transfer/job.hpp"
#include "transfer/schedule.hpp"

namespace waywiser::transfer {

// All bytes of the job are submitted.
void announce_submitted(Schedule& schedule, Job& job);
// All bytes of the job are complete, or it was given up: finishes the job, counts it as ended, and
// wakes those who wait for it.
void complete(Schedule& schedule, Job& job);

}  // namespace waywiser::transfer
