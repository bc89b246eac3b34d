// Helpers of executors that copy in chunks with an engine's threads and staging memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transfer/chunked_copy.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {

// Converts a view to one side of a copy.
transfer::Endpoint end_of(const View& view);

class ChunkedExecution final : public Execution {
public:
    ChunkedExecution(transfer::Engine& engine, transfer::CopyShape shape)
        : engine_(engine), shape_(std::move(shape)) {}
    // Returns when every byte has arrived.
    void start(const View& source, const View& destination) override;

private:
    transfer::Engine& engine_;
    const transfer::CopyShape shape_;
};

// The GPU whose links carry the bytes: the destination's, else the source's; -1 for none.
int gpu_of(const Path& path);

// Returns why CPUs cannot fill or drain slots from the memory, or nullopt. Memory that GPUs can
// access needs no slots.
std::optional<std::string> staging_unsupported_reason(const Memory& memory);

// What the library does with a large copy of the transfer's path, without a policy: the defaults of
// the parameters. `relays`: other GPUs whose links help.
transfer::CopyShape shipped_shape(const Path& path, const Machine& machine,
                                  const std::vector<int>& relays = {});

// Ordered parameters: the default first, then other useful numbers.
Parameter threads_parameter(std::size_t usual, const Machine& machine);
Parameter chunk_parameter(std::size_t usual);
Parameter slots_parameter(std::size_t usual);
Parameter stores_parameter(bool streaming);

// The shape from the transfer's parameters.
transfer::CopyShape shape_of(const Executor& executor, const Transfer& transfer,
                             const Machine& machine);

}  // namespace waywiser
