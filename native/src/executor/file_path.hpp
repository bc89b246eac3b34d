// What executors share that read and write files: which end is the file, what the other may be,
// and their parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// One that reads and writes files by calls that return when it is done.
class FileExecutor : public Executor {
public:
    // Of requests under way at once; the first is the default.
    explicit FileExecutor(std::vector<std::string> depths) : depths_(std::move(depths)) {}

    // Why a path is not one between a file and memory of the host.
    [[nodiscard]] std::optional<std::string> refusal(const Transfer& transfer,
                                                     const Machine& machine) const override;
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override;
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }

protected:
    // Block, depth, and sync, which means something to a write alone.
    [[nodiscard]] std::vector<Parameter> all_parameters() const;

private:
    std::vector<std::string> depths_;
};

// The engine that the transfer's parameters ask for, on the CPUs of its memory.
std::unique_ptr<host::BlockIo> block_io(const Executor& executor, const Transfer& transfer,
                                        const Machine& machine);

// One side of a transfer as a range of a file and memory, from what was given to a start.
host::FileRange file_range(const View& source, const View& destination);

}  // namespace waywiser
