// Threads of the CPU that share the moving of a transfer's bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "host/team.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {

class CpuMover {
public:
    // The thread that moves takes the first share; a team of the others, each on one of the CPUs,
    // takes the rest.
    CpuMover(const std::vector<int>& cpus, std::size_t threads, bool streaming);

    // Sleeping threads take up to a fifth of a millisecond to wake, which is not the move's time.
    void wake();
    void move(const View& destination, const View& source);

private:
    std::size_t threads_;
    bool streaming_;
    host::Team team_;
};

// How many threads, of so many CPUs at most: 1, 2, 4, ... and all.
std::vector<std::string> thread_choices(std::size_t most);

}  // namespace waywiser
