// A workload on a session's resources: filled buffers, prepared executions, streams and CPUs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "measure/buffer_plan.hpp"
#include "measure/buffers.hpp"
#include "measure/timer.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// Streams of a session, created once and reused by all workloads.
class Streams {
public:
    // The n-th stream of a device.
    gpu::Stream& get(int device, std::size_t n);

private:
    std::map<int, std::vector<std::unique_ptr<gpu::Stream>>> streams_;
};

class PreparedWorkload {
public:
    PreparedWorkload(const Request& request, const Machine& machine, BufferPool& pool,
                     Streams& streams, transfer::Engine& engine);
    ~PreparedWorkload();  // waits for the work of a failed execution, since buffers are reused
    PreparedWorkload(const PreparedWorkload&) = delete;
    PreparedWorkload& operator=(const PreparedWorkload&) = delete;

    [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
    // In the order of the transfers: source, destination; of several memories as one.
    [[nodiscard]] std::vector<PlacedBuffer> placements() const;
    // The buffer of the n-th placement; of several memories the first.
    [[nodiscard]] const std::shared_ptr<Buffer>& buffer(std::size_t n) const;
    [[nodiscard]] std::size_t buffer_bytes() const;
    [[nodiscard]] std::vector<int> gpus() const;  // used by the workload
    [[nodiscard]] const std::vector<int>& submit_cpus() const { return submit_cpus_; }
    // Maximum number of repetitions: with own slices, each needs its own piece of the buffers.
    [[nodiscard]] std::size_t most_repetitions() const;

    void fill();  // sources with the pattern, destinations with its complement
    // The same for a workload whose bytes have been checked since fill(): only destinations, since
    // no execution writes to a source. Where one buffer is both, everything.
    void refill();
    // Throws WrongBytes unless the bytes of all repetitions have arrived everywhere. Checks the
    // first and last of their slices.
    void check(std::size_t repetitions) const;
    // Restores the state before a number of executions, including caches.
    void condition(std::size_t repetitions);

private:
    void lay_out(std::size_t index, Streams& streams, transfer::Engine& engine);
    [[nodiscard]] View view(const Memory& memory, std::size_t buffer, std::size_t bytes,
                            const Arrangement& arrangement, std::vector<std::byte*>& each) const;
    [[nodiscard]] PlacedBuffer placed(const Memory& memory, std::size_t buffer) const;
    void fill_source(std::size_t transfer, std::size_t slice) const;
    void poison_destination(std::size_t transfer, std::size_t slice) const;
    [[nodiscard]] std::uint64_t seed(std::size_t transfer, std::size_t slice) const;
    void check(std::size_t transfer, std::size_t slice) const;
    void restore(std::size_t slices) const;
    // For the slices that start at most `before` bytes after the first.
    void condition_caches(const Part& part, std::size_t before) const;

    const Request& request_;
    const Machine& machine_;
    const BufferPlan plan_;
    std::map<int, std::size_t> used_streams_;
    std::map<int, std::size_t> used_cpus_;  // by node
    std::vector<int> submit_cpus_;
    std::vector<std::shared_ptr<Buffer>> buffers_;  // as planned
    std::vector<Part> parts_;
};

}  // namespace waywiser::measure
