// Moves a range of a file in requests of one block, several of them concurrently, which a disk with
// queues needs to be busy.
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
    std::size_t at = 0;  // offset in the file
};

class BlockIo {
public:
    virtual ~BlockIo() = default;
    // Wakes threads that sleep between calls.
    virtual void wake() {}
    // Returns when all of the range is moved. Throws NotSupported with the system's error.
    virtual void move(const FileRange& range) = 0;
};

// Each request is a pread or pwrite in its own thread, on any of the CPUs. `bytes`: the largest
// range, which limits the threads to its number of blocks.
std::unique_ptr<BlockIo> by_threads(const std::vector<int>& cpus, std::size_t depth,
                                    std::size_t block, std::size_t bytes);

}  // namespace waywiser::host
