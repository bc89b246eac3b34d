// Copies by the runtime's memcpy: the DMA engines of a GPU, with whatever the runtime adds where a
// side is not page-locked (staging), or where both sides are on the host (its own CPU copy).
#include <set>

#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

enum class Call { async, peer_async, sync };

class CopyExecution final : public Execution {
public:
    CopyExecution(Call call, int source_gpu, int destination_gpu, gpu::Stream& stream)
        : call_(call),
          source_gpu_(source_gpu),
          destination_gpu_(destination_gpu),
          stream_(stream) {}

    void start(const View& source, const View& destination) override {
        switch (call_) {
            case Call::async:
                gpu::copy_async(destination.data, source.data, source.bytes, stream_);
                break;
            case Call::peer_async:
                gpu::copy_peer_async(destination.data, destination_gpu_, source.data, source_gpu_,
                                     source.bytes, stream_);
                break;
            case Call::sync:
                gpu::copy_sync(destination.data, source.data, source.bytes, stream_.device());
                break;
        }
    }

    void finish() override {
        if (call_ != Call::sync) stream_.synchronize();
    }

private:
    Call call_;
    int source_gpu_;
    int destination_gpu_;
    gpu::Stream& stream_;
};

bool between_gpus(const Path& path) {
    return path.source.on_gpu() && path.destination.on_gpu() &&
           path.source.place != path.destination.place;
}

bool direct_access(const Path& path, const Machine& machine) {
    const GpuPlace* from = machine.gpu(path.source.place.index);
    const GpuPlace* to = machine.gpu(path.destination.place.index);
    const auto sees = [](const GpuPlace* a, const GpuPlace* b) {
        return a != nullptr && b != nullptr &&
               std::ranges::find(a->peers, b->index) != a->peers.end();
    };
    return sees(from, to) && sees(to, from);
}

bool page_locked_or_device(const Memory& memory) {
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    return kind != nullptr && kind->needs_gpu();
}

class CopyEngine final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "copy-engine",
            .description =
                "the runtime's memcpy: a GPU's DMA engines, staged by the runtime where "
                "they cannot reach",
            .parameters = {api(), peer(), submit({"nearest"})},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019 (cudaMemcpyAsync, "
                "cudaMemcpyPeerAsync); Pearson, thesis, ch. Explicit Memory Performance "
                "(cudaMemcpy)"};
        return info;
    }

    [[nodiscard]] std::optional<std::string> refusal(const Transfer& transfer,
                                                     const Machine& machine) const override {
        const Path& path = transfer.path;
        if (machine.gpus.empty()) return "the runtime's copies need a GPU and none is shown";
        for (const Memory* memory : {&path.source, &path.destination}) {
            if (memory->place.kind == Place::Kind::file) {
                return "the runtime's copies do not reach files";
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override {
        const Path& path = transfer.path;
        std::vector<Parameter> known;
        if (between_gpus(path)) {
            known.push_back(peer());
            if (!direct_access(path, machine)) known.back().choices = {"off"};
            known.push_back(submit(submit_choices(machine)));
        } else {
            known.push_back(api());
        }
        return known;
    }

    [[nodiscard]] std::optional<bool> peer_access(const Transfer& transfer,
                                                  const Machine& machine) const override {
        if (!between_gpus(transfer.path)) return std::nullopt;
        return parameter(*this, transfer, machine, "peer") == "on";
    }

    // What blocks the host behind a closed gate has to be timed by the host: pageable sides,
    // host-to-host, synchronous calls, and copies between GPUs that the runtime stages.
    [[nodiscard]] TimingMode timing(const Transfer& transfer,
                                    const Machine& machine) const override {
        const Path& path = transfer.path;
        const bool on_gpu = path.source.on_gpu() || path.destination.on_gpu();
        const bool locked =
            page_locked_or_device(path.source) && page_locked_or_device(path.destination);
        if (!on_gpu || !locked || parameter(*this, transfer, machine, "api") == "sync" ||
            !peer_access(transfer, machine).value_or(true)) {
            return TimingMode::host;
        }
        return TimingMode::device;
    }

    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer,
                                         const Machine& machine) const override {
        const Path& path = transfer.path;
        if (path.source.on_gpu()) return {path.source.place.index};
        if (path.destination.on_gpu()) return {path.destination.place.index};
        return {machine.gpus.front().index};
    }

    [[nodiscard]] int submit_node(const Transfer& transfer, const Machine& machine) const override {
        const std::string node = parameter(*this, transfer, machine, "submit");
        if (node.empty() || node == "nearest") return Executor::submit_node(transfer, machine);
        return std::stoi(node);
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(
        const Transfer& transfer, const Machine& machine,
        const std::vector<gpu::Stream*>& lanes) const override {
        const Path& path = transfer.path;
        Call call = Call::async;
        if (between_gpus(path)) call = Call::peer_async;
        if (parameter(*this, transfer, machine, "api") == "sync") call = Call::sync;
        return std::make_unique<CopyExecution>(call, path.source.place.index,
                                               path.destination.place.index, *lanes.front());
    }

private:
    static Parameter api() {
        return {.name = "api",
                .description = "cudaMemcpyAsync on a stream, or the synchronous cudaMemcpy",
                .choices = {"async", "sync"}};
    }
    static Parameter peer() {
        return {.name = "peer",
                .description =
                    "direct access between the two GPUs' contexts enabled (on) or not "
                    "(off: the runtime stages through the host)",
                .choices = {"on", "off"}};
    }
    static Parameter submit(std::vector<std::string> choices) {
        return {.name = "submit",
                .description =
                    "NUMA node whose CPUs make the call: the source's nearest, or a "
                    "node's number",
                .choices = std::move(choices)};
    }
    // With one node there is nothing to choose.
    static std::vector<std::string> submit_choices(const Machine& machine) {
        std::vector<std::string> choices{"nearest"};
        if (machine.numa.size() > 1) {
            for (const NumaNode& node : machine.numa) choices.push_back(std::to_string(node.index));
        }
        return choices;
    }
};

const Registered<Executor, CopyEngine> registered;

}  // namespace
}  // namespace waywiser
