// Helpers of executors that read and write files: which end is the file, what the other end may be,
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

// The two ends of a path, one of which is a file.
struct FilePath {
    const Memory& file;
    const Memory& memory;
    bool writing;  // to the file
};
FilePath file_path(const Path& path);

// An executor whose calls return when the read or write is done.
class FileExecutor : public Executor {
public:
    // `depths`: numbers of concurrent requests; the first is the default.
    explicit FileExecutor(std::vector<std::string> depths) : depths_(std::move(depths)) {}

    // Returns why a path is not between a file and host memory, or nullopt.
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override;
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override;
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }

protected:
    // Block, depth, and sync, which applies only to writes.
    [[nodiscard]] std::vector<Parameter> all_parameters() const;

private:
    std::vector<std::string> depths_;
};

// I/O with the transfer's parameters, on the CPUs of its memory.
std::unique_ptr<host::BlockIo> block_io(const Executor& executor, const Transfer& transfer,
                                        const Machine& machine);

// The file and memory range of a start's views.
host::FileRange file_range(const View& source, const View& destination);

}  // namespace waywiser
