// A workload laid out on a session's resources: buffers filled, executions prepared, streams and
// CPUs assigned.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "measure/buffers.hpp"
#include "measure/timer.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// Streams of a session, made once and lent to one workload after the other.
class Streams {
public:
    // The n-th stream of a device.
    gpu::Stream& get(int device, std::size_t n);

private:
    std::map<int, std::vector<std::unique_ptr<gpu::Stream>>> streams_;
};

class Workbench {
public:
    Workbench(const Request& request, const Machine& machine, BufferPool& pool, Streams& streams);
    ~Workbench();  // waits for what a failure left under way: the next workload gets the buffers
    Workbench(const Workbench&) = delete;
    Workbench& operator=(const Workbench&) = delete;

    [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
    [[nodiscard]] std::vector<PlacedBuffer> placements() const;
    [[nodiscard]] std::size_t buffer_bytes() const;
    [[nodiscard]] std::vector<int> gpus() const;  // that the workload touches
    [[nodiscard]] const std::vector<int>& submit_cpus() const { return submit_cpus_; }
    [[nodiscard]] std::size_t slices() const { return slices_; }

    void fill();         // sources with the pattern, destinations with its complement
    void check() const;  // throws WrongBytes unless the first slice has arrived everywhere
    void condition();    // the state that every execution starts from, caches included

private:
    void lay_out(const Transfer& transfer, const Machine& machine, Streams& streams);

    const Request& request_;
    const Machine& machine_;
    std::size_t slices_;
    std::map<int, std::size_t> used_streams_;
    std::map<int, std::size_t> used_cpus_;  // by node
    std::vector<int> submit_cpus_;
    std::vector<std::shared_ptr<Buffer>> buffers_;  // source, destination of each transfer
    std::vector<Part> parts_;
};

}  // namespace waywiser::measure
