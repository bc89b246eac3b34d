// The cost of instantiating and launching a graph.
#include <cstddef>
#include <memory>
#include <optional>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kMostLaunches = 64;
constexpr std::size_t kCopied = 8;  // bytes per copy

struct EmptyNode {
    WAYWISER_ON_GPU void operator()(gpu::Thread) const {}
};

// A chain of nodes: empty kernels, or copies from the host.
class Sequence {
public:
    Sequence(bool copies, std::size_t nodes, gpu::Stream& stream)
        : host_(kCopied, gpu::HostUse::portable, stream.device()),
          device_(stream.device(), kCopied),
          graph_(recorded(copies, nodes, stream)) {}
    [[nodiscard]] const gpu::Graph& graph() const { return graph_; }

private:
    [[nodiscard]] gpu::Graph recorded(bool copies, std::size_t nodes, gpu::Stream& stream) const {
        add(copies, stream);  // the first launch loads code, which is not to be recorded
        stream.synchronize();
        return gpu::Graph(stream, [&] {
            for (std::size_t i = 0; i < nodes; ++i) add(copies, stream);
        });
    }
    void add(bool copies, const gpu::Stream& stream) const {
        if (copies) {
            gpu::copy_async(device_.data(), host_.data(), kCopied, stream);
        } else {
            gpu::launch(stream, {}, EmptyNode{});
        }
    }

    gpu::HostBuffer host_;
    gpu::DeviceBuffer device_;
    gpu::Graph graph_;
};

class GraphTrial : public Trial {
public:
    GraphTrial(bool copies, std::size_t nodes, gpu::Stream& stream)
        : stream_(stream), sequence_(copies, nodes, stream) {}
    double run(std::size_t repetitions) override {
        double seconds = 0;
        for (std::size_t i = 0; i < repetitions; ++i) seconds += once();
        return seconds;
    }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMostLaunches; }

protected:
    [[nodiscard]] gpu::Stream& stream() const { return stream_; }
    [[nodiscard]] const gpu::Graph& graph() const { return sequence_.graph(); }

private:
    gpu::Stream& stream_;
    Sequence sequence_;
};

class InstantiateTrial final : public GraphTrial {
public:
    using GraphTrial::GraphTrial;
    double once() override {
        std::optional<gpu::ExecutableGraph> made;
        return timed([&] { made.emplace(graph()); });
    }
};

// Each launch needs an idle stream: a graph that is running cannot run a second time concurrently.
class LaunchTrial final : public GraphTrial {
public:
    LaunchTrial(bool copies, std::size_t nodes, gpu::Stream& stream, bool to_the_end)
        : GraphTrial(copies, nodes, stream), to_the_end_(to_the_end), executable_(graph()) {}
    double once() override {
        const double seconds = timed([this] {
            executable_.launch(stream());
            if (to_the_end_) stream().synchronize();
        });
        stream().synchronize();
        return seconds;
    }

private:
    bool to_the_end_;
    gpu::ExecutableGraph executable_;
};

enum class Step { instantiate, launch, launch_synchronize };

class GraphCall final : public Operation {
public:
    GraphCall(Step step, const char* name, const char* description)
        : step_(step),
          info_{.name = name,
                .description = description,
                .parameters = {{.name = "of",
                                .description = "what each node is: an empty kernel, or a copy of 8 "
                                               "bytes from page-locked memory",
                                .choices = {"kernel", "copy"}},
                               {.name = "nodes",
                                .description = "how many, each after the one before",
                                .kind = ParameterKind::ordered,
                                .choices = {"1", "8", "64"}}},
                .source = "Comm|Scope 0.12 (cudaGraphInstantiate, cudaGraphLaunch)"} {}

    [[nodiscard]] const Info& info() const override { return info_; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools& tools) const override {
        const bool copies = parameter(*this, call, machine, "of") == "copy";
        const auto nodes = std::stoul(parameter(*this, call, machine, "nodes"));
        gpu::Stream& stream = tools.stream(call.place.index, 0);
        if (step_ == Step::instantiate) {
            return std::make_unique<InstantiateTrial>(copies, nodes, stream);
        }
        return std::make_unique<LaunchTrial>(copies, nodes, stream,
                                             step_ == Step::launch_synchronize);
    }

private:
    Step step_;
    Info info_;
};

const bool registered = [] {
    auto& operations = Operations::instance();
    operations.add(std::make_unique<GraphCall>(Step::instantiate, "graph-instantiate",
                                               "making a recorded graph ready to be launched"));
    operations.add(
        std::make_unique<GraphCall>(Step::launch, "graph-launch",
                                    "launching a graph on an idle stream, until the call returns"));
    operations.add(std::make_unique<GraphCall>(Step::launch_synchronize, "graph-launch-synchronize",
                                               "launching a graph and waiting until it is done"));
    return true;
}();

}  // namespace
}  // namespace waywiser
