// Ranks of the fake NCCL that are threads, each with a connection of its own.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ranks/nccl_connection.hpp"

namespace waywiser::test {

using ConnectedRank = std::function<void(const std::shared_ptr<ranks::NcclConnection>&)>;

// Runs a rank of `size` ranks in each of `present` threads, on GPU `rank % gpus`. Throws the error
// of the lowest rank that has one.
inline void run_nccl_ranks(int size, int gpus, double seconds, const ConnectedRank& work,
                           int present = -1) {
    const nccl::UniqueId id = ranks::new_nccl_id();
    const int threads = present < 0 ? size : present;
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
    {
        std::vector<std::jthread> all;
        for (int rank = 0; rank < threads; ++rank) {
            all.emplace_back([&, rank] {
                try {
                    const auto connection =
                        std::make_shared<ranks::NcclConnection>(rank % gpus, seconds);
                    connection->join(id, rank, size);
                    work(connection);
                } catch (...) {
                    errors[static_cast<std::size_t>(rank)] = std::current_exception();
                }
            });
        }
    }
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

}  // namespace waywiser::test
