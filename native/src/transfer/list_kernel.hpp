// The launch of the kernel that moves the runs of a list.
#pragma once

#include "gpu/gpu.hpp"
#include "transfer/move_runs.hpp"

namespace waywiser::transfer {

// Enqueues the moves of all runs on the stream, by so many blocks. Both sides lie where kernels of
// the stream's device find them, the tables of their offsets too.
void launch_list(const gpu::Stream& stream, unsigned blocks, const Runs& to, const Runs& from);

// The runs of a list for a kernel. `offsets` is where it reads the table.
Runs listed_runs(std::byte* base, std::size_t run, std::size_t count, const std::size_t* offsets,
                 std::size_t access);

}  // namespace waywiser::transfer
