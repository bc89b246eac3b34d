// The cost of one fault that migrates a page of managed memory to the processor that accesses it.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "operation/cycle.hpp"
#include "operation/slope.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kLeastFaults = 16;  // per sample, in the shorter walk
constexpr std::size_t kMostFaults = 64;

// A list in managed memory, one cell per stride, that can be moved to a place.
class MigratingList {
public:
    MigratingList(std::size_t cells, std::size_t stride, int gpu)
        : stride_(stride), memory_((cells + 1) * stride, gpu) {
        for (std::size_t i = 0; i < cells; ++i) cell(i)->next = cell(i + 1);
    }
    [[nodiscard]] const Cell* first() const { return cell(0); }
    // Migrates the first strides to a place and waits until they are there.
    void put(std::size_t strides, gpu::Location where, const gpu::Stream& stream) const {
        gpu::prefetch_async(memory_.data(), strides * stride_, where, stream);
        stream.synchronize();
    }

private:
    [[nodiscard]] Cell* cell(std::size_t i) const {
        return reinterpret_cast<Cell*>(memory_.data() + i * stride_);
    }
    std::size_t stride_;
    gpu::ManagedBuffer memory_;
};

struct Walk {
    const Cell* first;
    std::size_t steps;
    const Cell** last;
    WAYWISER_ON_GPU void operator()(gpu::Thread) const { *last = follow(first, steps); }
};

// Moves the list back before each walk; the derived class times the walk.
class FaultTrial : public Trial {
public:
    FaultTrial(std::size_t stride, gpu::Location from, gpu::Stream& returning)
        : list_(2 * kMostFaults, stride, returning.device()), from_(from), returning_(returning) {}

    double run(std::size_t repetitions) override {
        return slope([&] { return Walks{away(repetitions), away(2 * repetitions)}; });
    }
    double once() override {
        list_.put(1, from_, returning_);
        return seen_by_host(list_.first(), 1);
    }
    [[nodiscard]] std::size_t least_repetitions() const override { return kLeastFaults; }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostFaults; }

protected:
    virtual double walk(const Cell* first, std::size_t steps) = 0;
    virtual double seen_by_host(const Cell* first, std::size_t steps) = 0;

private:
    double away(std::size_t steps) {
        list_.put(steps, from_, returning_);
        return walk(list_.first(), steps);
    }

    MigratingList list_;
    gpu::Location from_;
    gpu::Stream& returning_;
};

class GpuFaultTrial final : public FaultTrial {
public:
    GpuFaultTrial(std::size_t stride, gpu::Location from, gpu::Stream& returning,
                  gpu::Stream& stream, OperationTools& tools)
        : FaultTrial(stride, from, returning),
          stream_(stream),
          tools_(tools),
          overhead_(tools.empty_interval(stream)),
          last_(stream.device(), sizeof(const Cell*)),
          start_(stream.device()),
          stop_(stream.device()) {}

    [[nodiscard]] double overhead() const override { return overhead_; }

protected:
    double walk(const Cell* first, std::size_t steps) override {
        tools_.behind_gate({&stream_}, [&] {
            start_.record(stream_);
            launch(first, steps);
            stop_.record(stream_);
        });
        return gpu::seconds_between(start_, stop_);
    }
    double seen_by_host(const Cell* first, std::size_t steps) override {
        return timed([&] {
            launch(first, steps);
            stream_.synchronize();
        });
    }

private:
    void launch(const Cell* first, std::size_t steps) const {
        gpu::launch(stream_, {}, Walk{first, steps, reinterpret_cast<const Cell**>(last_.data())});
    }

    gpu::Stream& stream_;
    OperationTools& tools_;
    double overhead_;
    gpu::DeviceBuffer last_;
    gpu::Event start_;
    gpu::Event stop_;
};

class CoreFaultTrial final : public FaultTrial {
public:
    using FaultTrial::FaultTrial;

protected:
    double walk(const Cell* first, std::size_t steps) override {
        return timed([&] { last_ = follow(first, steps); });
    }
    double seen_by_host(const Cell* first, std::size_t steps) override {
        return walk(first, steps);
    }

private:
    const Cell* volatile last_ = nullptr;  // so that the compiler keeps the loads
};

// Places that pages can come from: all other places; for a core only GPUs.
std::vector<std::string> sources(const Place& place, const Machine& machine) {
    std::vector<std::string> places;
    if (place.kind == Place::Kind::gpu) {
        for (const NumaNode& node : machine.numa) {
            places.push_back(Place{Place::Kind::numa, node.index, {}}.text());
        }
    }
    for (const GpuPlace& gpu : machine.gpus) {
        const Place other{Place::Kind::gpu, gpu.index, {}};
        if (other != place) places.push_back(other.text());
    }
    return places;
}

Parameter from(std::vector<std::string> places) {
    return {.name = "from",
            .description = "where the pages are before another processor touches them",
            .choices = std::move(places)};
}

Parameter stride() {
    return {.name = "stride",
            .description =
                "bytes from one page that is wanted to the next: at 2 MiB each is in a "
                "block of its own, of which the driver brings no more than it must",
            .choices = {"2097152", "1048576"}};
}

class PageFaultLatency final : public Operation {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "page-fault-latency",
            .description =
                "one fault on managed memory that lies elsewhere: a step along a list "
                "with a page for each",
            .parameters = {from({"numa:0"}), stride()},
            .source =
                "Pearson et al., NUMA-aware data-transfer measurements for Power/NVLink "
                "systems, 2018, section 3.1; Comm|Scope (UM_Latency)"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu, Place::Kind::numa};
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Place& place,
                                                    const Machine& machine) const override {
        std::vector<std::string> places = sources(place, machine);
        if (places.empty()) return {stride()};
        return {from(std::move(places)), stride()};
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const OperationCall& call, const Machine& machine) const override {
        if (!sources(call.place, machine).empty()) return std::nullopt;
        return "there is no other place from which pages could come to " + call.place.text();
    }
    [[nodiscard]] TimingMode timing(Place::Kind kind) const override {
        return kind == Place::Kind::gpu ? TimingMode::device : TimingMode::host;
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools& tools) const override {
        const auto stride = std::stoul(parameter(*this, call, machine, "stride"));
        const auto source = Place::parse(parameter(*this, call, machine, "from"));
        const bool from_gpu = source.kind == Place::Kind::gpu;
        const gpu::Location where =
            from_gpu ? gpu::Location{.device = source.index} : gpu::Location{.node = source.index};
        const bool by_gpu = call.place.kind == Place::Kind::gpu;
        for (const Place& side : {source, call.place}) {
            if (side.kind == Place::Kind::gpu) admit(side.index, stride);
        }
        gpu::Stream& returning = tools.stream((from_gpu ? source : call.place).index, 0);
        if (!by_gpu) return std::make_unique<CoreFaultTrial>(stride, where, returning);
        return std::make_unique<GpuFaultTrial>(stride, where, returning,
                                               tools.stream(call.place.index, 0), tools);
    }

private:
    static void admit(int gpu, std::size_t stride) {
        const std::string name = "gpu:" + std::to_string(gpu);
        if (!gpu::device(gpu).concurrent_managed) {
            throw NotSupported(name + " takes all managed memory at a launch, not page by page");
        }
        const std::size_t needed = (2 * kMostFaults + 1) * stride;
        if (gpu::free_bytes(gpu) < needed) {
            throw NotSupported("a list of " + std::to_string(needed >> 20) +
                               " MiB in managed memory needs as much free on " + name);
        }
    }
};

const Registered<Operation, PageFaultLatency> registered;

}  // namespace
}  // namespace waywiser
