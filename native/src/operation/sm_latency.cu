// Memory latency of a GPU thread: dependent loads.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "operation/cycle.hpp"
#include "operation/device_slope.hpp"
#include "operation/reached_memory.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kApart = 128;          // bytes: each cell is a GPU cache line
constexpr std::size_t kLeastLoads = 256;     // per sample: the shortest cycle twice
constexpr std::size_t kMostLoads = 1 << 16;  // per sample
constexpr std::size_t kTimesTheCache = 4;    // this many times the cache's bytes evict its content
constexpr gpu::Shape kLinking{.blocks = 256, .threads = 256};

struct Link {
    Cycle cycle;
    const Cell** at;
    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        for (std::size_t i = thread.index; i < cycle.order.cells(); i += thread.count) {
            cycle.link(i);
        }
        if (thread.index == 0) *at = cycle.cell(0);
    }
};

// Continues where the last walk stopped, so that no load repeats.
struct Follow {
    const Cell** at;
    std::size_t links;
    WAYWISER_ON_GPU void operator()(gpu::Thread) const { *at = follow(*at, links); }
};

class SmChaseTrial final : public Trial {
public:
    SmChaseTrial(gpu::Stream& stream, const Memory& memory, std::size_t bytes,
                 const Machine& machine, OperationTools& tools)
        : stream_(stream),
          memory_(stream.device(), memory, bytes, machine, tools),
          at_(stream.device(), sizeof(const Cell*)),
          slope_(stream, tools) {
        const Order order(std::max<std::size_t>(bytes / kApart, 2));
        gpu::launch(stream_, kLinking, Link{{memory_.data(), kApart, order}, at()});
        if (bytes <= gpu::device(stream.device()).l2_bytes) {
            walk(order.cells());  // once around: a chase that fits into a cache is in it now
            stream_.synchronize();
            return;
        }
        stream_.synchronize();
        wash_out(stream_);
        const Place here{Place::Kind::gpu, stream.device(), {}};
        if (memory.place.kind == Place::Kind::gpu && memory.place != here) {
            wash_out(tools.stream(memory.place.index, 0));
        }
    }

    double run(std::size_t repetitions) override {
        return slope_(repetitions, [this](std::size_t links) { walk(links); });
    }
    double once() override {
        return timed([this] {
            walk(1);
            stream_.synchronize();
        });
    }
    [[nodiscard]] double overhead() const override { return slope_.overhead(); }
    [[nodiscard]] std::size_t least_repetitions() const override { return kLeastLoads; }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostLoads; }

private:
    [[nodiscard]] const Cell** at() const { return reinterpret_cast<const Cell**>(at_.data()); }
    void walk(std::size_t links) const { gpu::launch(stream_, {}, Follow{at(), links}); }
    // The cells that were written last are in the cache of a GPU, mostly that of the memory's
    // owner: replace them by other bytes.
    static void wash_out(const gpu::Stream& stream) {
        const std::size_t bytes = kTimesTheCache * gpu::device(stream.device()).l2_bytes;
        const gpu::DeviceBuffer other(stream.device(), bytes);
        gpu::fill_async(other.data(), 0, bytes, stream);
        stream.synchronize();
    }

    gpu::Stream& stream_;
    ReachedMemory memory_;
    gpu::DeviceBuffer at_;
    DeviceSlope slope_;
};

Parameter range() {
    return {.name = "bytes",
            .description = "that the chase runs through: beyond the caches, or within one",
            .kind = ParameterKind::ordered,
            .choices = {"268435456", "16384", "2097152", "4194304"}};
}

// Host memory of a node allocated by the runtime, as nvbandwidth does: host-alloc:0.
constexpr std::string_view kHostAlloc = "host-alloc:";

Memory memory_named(const std::string& text) {
    if (!text.starts_with(kHostAlloc)) return ReachedMemory::at(Place::parse(text));
    const Place place = Place::parse("numa:" + text.substr(kHostAlloc.size()));
    return {"pinned", place, {{"from", "host-alloc"}}};
}

std::vector<std::string> memories(int gpu, const Machine& machine) {
    std::vector<std::string> found = ReachedMemory::places(gpu, machine);
    for (const NumaNode& node : machine.numa) {
        found.push_back(std::string(kHostAlloc) + std::to_string(node.index));
    }
    return found;
}

Parameter memory(std::vector<std::string> places) {
    return {.name = "memory",
            .description =
                "whose memory is read: the GPU's own, the host's (registered pages, or what "
                "cudaHostAlloc gives), or a peer's",
            .choices = std::move(places)};
}

class SmLatency final : public Operation {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "sm-latency",
            .description =
                "one load of a GPU's thread that waits for it: a step of a pointer chase",
            .parameters = {memory({"gpu:0"}), range()},
            .source =
                "Jia et al., Dissecting the NVIDIA Volta GPU Architecture via "
                "Microbenchmarking, 2018; lmbench (lat_mem_rd)"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Place& place,
                                                    const Machine& machine) const override {
        return {memory(memories(place.index, machine)), range()};
    }
    [[nodiscard]] TimingMode timing(Place::Kind) const override { return TimingMode::device; }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools& tools) const override {
        const Memory memory = memory_named(parameter(*this, call, machine, "memory"));
        const auto bytes = std::stoul(parameter(*this, call, machine, "bytes"));
        return std::make_unique<SmChaseTrial>(tools.stream(call.place.index, 0), memory, bytes,
                                              machine, tools);
    }
};

const Registered<Operation, SmLatency> registered;

}  // namespace
}  // namespace waywiser
