// Launches the kernel that moves the runs of a list.
#pragma once

#include "gpu/gpu.hpp"
#include "transfer/move_runs.hpp"

namespace waywiser::transfer {

// Enqueues the moves of all runs on the stream with a number of blocks. Kernels of the stream's
// device must be able to access both sides and their offset tables.
void launch_list(const gpu::Stream& stream, unsigned blocks, const Runs& to, const Runs& from);

// The runs of a list for a kernel, which reads the table at `offsets`.
Runs listed_runs(std::byte* base, std::size_t run, std::size_t count, const std::size_t* offsets,
                 std::size_t access);

}  // namespace waywiser::transfer
