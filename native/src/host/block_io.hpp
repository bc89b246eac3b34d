// A range of a file moved in requests of one block, several of them under way at once: a disk with
// queues is only busy when it has more than one thing to do.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace waywiser::host {

struct FileRange {
    int file = -1;
    bool writing = false;  // to the file
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::size_t at = 0;  // in the file
};

class BlockIo {
public:
    virtual ~BlockIo() = default;
    // Wakes what sleeps between calls.
    virtual void wake() {}
    // Returns when all of the range is moved. Throws Refused with what the system says.
    virtual void move(const FileRange& range) = 0;
};

// Each request is a pread or pwrite of its own thread, on any of the CPUs; works everywhere.
// `bytes` are the most that will be moved at once: no more threads than these have blocks.
std::unique_ptr<BlockIo> by_threads(const std::vector<int>& cpus, std::size_t depth,
                                    std::size_t block, std::size_t bytes);

}  // namespace waywiser::host
