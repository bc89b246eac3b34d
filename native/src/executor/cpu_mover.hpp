// CPU threads that share the bytes of a transfer.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "host/team.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {

class CpuMover {
public:
    // The calling thread moves the first share; a team of the other threads, each on one of the
    // CPUs, moves the rest.
    CpuMover(const std::vector<int>& cpus, std::size_t threads, bool streaming);

    // Wakes sleeping threads. That takes up to 0.2 ms, which is not part of the measured time.
    void wake();
    void move(const View& destination, const View& source);

private:
    std::size_t threads_;
    bool streaming_;
    host::Team team_;
};

// Numbers of threads up to `most`: 1, 2, 4, ... and all.
std::vector<std::string> thread_choices(std::size_t most);

}  // namespace waywiser
