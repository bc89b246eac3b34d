// One rank's part in an exchange of the memories of several ranks.
#pragma once

#include <cstddef>
#include <memory>

#include "executor/alltoall_plan.hpp"
#include "waywiser/executor.hpp"

namespace waywiser::alltoall {

// Pinned memory of all ranks together.
std::size_t staging_bytes(const Plan& plan);

// Called by all ranks of the plan; the group has them in the order of their numbers. The stream is
// that of the GPU at which the memory is; nullptr if it is on the host.
std::unique_ptr<Execution> prepare(const Plan& plan, const View& source, const View& destination,
                                   const gpu::Stream* stream, ranks::Messenger& group);

}  // namespace waywiser::alltoall
