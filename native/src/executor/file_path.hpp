// What executors share that read and write files: which end is the file, what the other may be,
// and their parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/block_io.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

// The ends of a path of which one is a file, in the order in which the file is named first.
struct FilePath {
    const Memory& file;
    const Memory& memory;
    bool writing;  // to the file
};
FilePath file_path(const Path& path);

// Why a path is not one between a file and memory of the host.
std::optional<std::string> file_path_refusal(const Path& path, const Machine& machine);

Parameter block_parameter();
Parameter depth_parameter(std::vector<std::string> choices);
Parameter sync_parameter();

// The engine that the transfer's parameters ask for, on the CPUs of its memory.
std::unique_ptr<host::BlockIo> block_io(const Executor& executor, const Transfer& transfer,
                                        const Machine& machine);

// One side of a transfer as a range of a file and memory, from what was given to a start.
host::FileRange file_range(const View& source, const View& destination);

}  // namespace waywiser
