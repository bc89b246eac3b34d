// Locates memory by the latency of reaching it: hypervisors hide sockets, but not latencies.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "gpu/gpu.hpp"
#include "measure/prepared_workload.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// Small copies from page-locked memory to each GPU, one after another, each completed before the
// next: their latency depends on the distance to the memory.
class SmallCopies {
public:
    // Creates a context on every GPU of the machine.
    SmallCopies(const Machine& machine, Streams& streams);

    [[nodiscard]] const std::vector<int>& gpus() const { return gpus_; }
    // Seconds of one copy from `host` to each GPU, in the order of gpus(): medians of several
    // copies.
    [[nodiscard]] std::vector<double> round(const std::byte* host);
    // Medians over rounds that start at pieces spread over the bytes.
    [[nodiscard]] std::vector<double> all(const std::byte* host, std::size_t bytes);

private:
    struct Target {
        gpu::Stream* stream;
        gpu::DeviceBuffer buffer;
    };
    std::vector<int> gpus_;
    std::vector<Target> targets_;
};

// The latencies of a session's page-locked buffers, each measured once, since a buffer does not
// move.
class BufferSides {
public:
    BufferSides(const Machine& machine, Streams& streams) : machine_(machine), streams_(streams) {}
    // Seconds of a small copy to each GPU of the machine; empty with fewer than two GPUs, or if the
    // memory is not page-locked.
    [[nodiscard]] std::vector<double> of(const std::shared_ptr<Buffer>& buffer,
                                         const Memory& memory);

private:
    const Machine& machine_;
    Streams& streams_;
    std::unique_ptr<SmallCopies> copies_;
    std::map<std::weak_ptr<Buffer>, std::vector<double>, std::owner_less<>> known_;
};

// Allocates all blocks and times copies and loads from them in turn. Throws NotSupported for
// unsupported memory, gpu::Error, std::bad_alloc.
LocalityOutcome locality(const LocalityRequest& request, const Machine& machine, Streams& streams);

}  // namespace waywiser::measure
