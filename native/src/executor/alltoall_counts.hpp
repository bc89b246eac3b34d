// The bytes of the messages of an exchange of all memories with all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace waywiser::alltoall {

// Bytes from each memory to each: [from][to].
using Counts = std::vector<std::vector<std::size_t>>;
// The same in proportion.
using Weights = std::vector<std::vector<double>>;

Weights equal_weights(std::size_t memories);
// Each sends to as many that follow it, the last to the first.
Weights weights_of_neighbours(std::size_t memories, std::size_t neighbours);
// Each sends to the n-th in proportion to 1/n: all send most to the first.
Weights skewed_weights(std::size_t memories);
// A traffic matrix of nccl-tests: a row for each sender, with a number for each receiver. Throws
// NotSupported, also for one of more memories.
Weights weights_in_file(const std::filesystem::path& file, std::size_t memories);

// Returns counts with which the memory that sends most sends `bytes`.
Counts counts_of(const Weights& weights, std::size_t bytes);
// Messages of one size, rounded up, as MPI_Alltoall and nccl-tests have them.
Counts equal_counts(std::size_t memories, std::size_t bytes);

}  // namespace waywiser::alltoall
