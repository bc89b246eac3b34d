// Copies by the runtime's memcpy: the DMA engines of a GPU (within one GPU the runtime may choose
// multiprocessors), with staging by the runtime if a side is not page-locked, or its CPU copy if
// both sides are on the host.
#include "executor/pieces.hpp"
#include "executor/reach.hpp"
#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// The call for contiguous bytes, and for each piece of a list.
enum class Call { async, peer_async, sync };
// The call for a box.
enum class BoxCall { volume, planes };

struct Calls {
    Call piece = Call::async;
    BoxCall box = BoxCall::volume;
};

gpu::Pitched pitched(const View& view) {
    const Arrangement& arrangement = *view.arrangement;
    return {.data = view.data,
            .pitch = arrangement.pitch,
            .rows = arrangement.plane / arrangement.pitch};
}

gpu::Pitched plane_of(const View& view, std::size_t n) {
    gpu::Pitched side = pitched(view);
    side.data = view.data + n * view.arrangement->plane;
    return side;
}

class CopyExecution final : public Execution {
public:
    CopyExecution(Calls calls, const Transfer& transfer, gpu::Stream& stream)
        : calls_(calls),
          source_gpu_(transfer.path.source.place.index),
          destination_gpu_(transfer.path.destination.place.index),
          planes_(planes_of(transfer)),
          stream_(stream) {}

    void start(const View& source, const View& destination) override {
        const bool box =
            source.arrangement != nullptr && source.arrangement->kind == Layout::Kind::box;
        if (box && calls_.box == BoxCall::volume) return copy_volume(source, destination);
        if (box) return copy_planes(source, destination);
        for_each_piece(destination, source, 0, source.bytes,
                       [this](std::byte* to, const std::byte* from, std::size_t bytes) {
                           copy_piece(to, from, bytes);
                       });
    }

    void finish() override {
        if (calls_.piece != Call::sync) stream_.synchronize();
    }

    // How the runtime submits a 3-D copy is not documented; the worst case is plane by plane.
    [[nodiscard]] std::size_t entries() const override { return planes_; }

private:
    static std::size_t planes_of(const Transfer& transfer) {
        if (transfer.layout.kind != Layout::Kind::box) return 1;
        const Arrangement arrangement = arrange(transfer, Side::source);
        return arrangement.count / arrangement.height;
    }

    void copy_piece(std::byte* to, const std::byte* from, std::size_t bytes) const {
        switch (calls_.piece) {
            case Call::async: gpu::copy_async(to, from, bytes, stream_); break;
            case Call::peer_async:
                gpu::copy_peer_async(to, destination_gpu_, from, source_gpu_, bytes, stream_);
                break;
            case Call::sync: gpu::copy_sync(to, from, bytes, stream_.device()); break;
        }
    }

    void copy_volume(const View& source, const View& destination) const {
        const Arrangement& arrangement = *source.arrangement;
        const gpu::Box box{.width = arrangement.run,
                           .height = arrangement.height,
                           .depth = arrangement.count / arrangement.height};
        if (calls_.piece == Call::peer_async) {
            gpu::copy_box_peer_async(pitched(destination), destination_gpu_, pitched(source),
                                     source_gpu_, box, stream_);
        } else {
            gpu::copy_box_async(pitched(destination), pitched(source), box, stream_);
        }
    }

    void copy_planes(const View& source, const View& destination) const {
        const Arrangement& arrangement = *source.arrangement;
        for (std::size_t n = 0; n < arrangement.count / arrangement.height; ++n) {
            gpu::copy_rows_async(plane_of(destination, n), plane_of(source, n), arrangement.run,
                                 arrangement.height, stream_);
        }
    }

    Calls calls_;
    int source_gpu_;
    int destination_gpu_;
    std::size_t planes_;  // planes of a box
    gpu::Stream& stream_;
};

class CopyEngine final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "copy-engine",
            .description =
                "the runtime's memcpy: a GPU's DMA engines, staged by the runtime where "
                "they cannot reach; within a GPU the runtime may choose multiprocessors",
            .parameters = {api(), peer(), submit({"nearest"}), call()},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019 (cudaMemcpyAsync, "
                "cudaMemcpyPeerAsync); Comm|Scope 0.12 (cudaMemcpy2DAsync, cudaMemcpy3DAsync, "
                "cudaMemcpy3DPeerAsync); Pearson, thesis, ch. Explicit Memory Performance "
                "(cudaMemcpy)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.in_sets = true,
                .either_unit = true,
                .family = Family::runtime_copy,
                .shares = {.host_memory = false, .cpus = false, .file_system = false},
                .reference = PathClass::gpu,
                .calls = {{.text = "cudaMemcpyAsync", .settings = {{"api", "async"}}},
                          {.text = "cudaMemcpy", .settings = {{"api", "sync"}}},
                          {.text = "cudaMemcpyPeerAsync", .settings = {{"api", "peer"}}},
                          {.text = "cudaMemcpyPeerAsync",
                           .between = {{Place::Kind::gpu, Place::Kind::gpu}},
                           .two_places = true},
                          {.text = "cudaMemcpyAsync"}},
                .library = {.contiguous = true, .lists = true}};
    }

    [[nodiscard]] bool serves(Layout::Kind) const override { return true; }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        if (machine.gpus.empty()) return "the runtime's copies need a GPU and none is shown";
        for (const Memory* memory : {&path.source, &path.destination}) {
            if (auto reason = copy_unsupported_reason(*memory)) return reason;
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
            if (transfer.layout.kind == Layout::Kind::contiguous) {
                known.push_back(api());
                known.back().choices = {"peer", "async"};
            }
        } else if (transfer.layout.kind == Layout::Kind::contiguous) {
            known.push_back(api());
            known.back().choices = {"async", "sync"};
        }
        if (transfer.layout.kind == Layout::Kind::box) known.push_back(call());
        return known;
    }

    [[nodiscard]] std::optional<bool> peer_access(const Transfer& transfer,
                                                  const Machine& machine) const override {
        if (!between_gpus(transfer.path)) return std::nullopt;
        return parameter(*this, transfer, machine, "peer") == "on";
    }

    // Copies that block the host behind a closed gate need host timing: pageable sides,
    // host-to-host, synchronous calls, and copies between GPUs that the runtime stages. Many calls
    // for one transfer fill the stream's queue, which also blocks.
    [[nodiscard]] TimingMode timing(const Transfer& transfer,
                                    const Machine& machine) const override {
        const Path& path = transfer.path;
        const bool on_gpu = path.source.on_gpu() || path.destination.on_gpu();
        const bool locked = known_to_gpus(path.source) && known_to_gpus(path.destination);
        const bool many = transfer.layout.kind == Layout::Kind::list ||
                          parameter(*this, transfer, machine, "call") == "2d";
        if (!on_gpu || !locked || many || parameter(*this, transfer, machine, "api") == "sync" ||
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

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        Calls calls;
        const std::string api = parameter(*this, transfer, machine, "api");
        if (between_gpus(transfer.path) && api != "async") calls.piece = Call::peer_async;
        if (api == "sync") calls.piece = Call::sync;
        if (parameter(*this, transfer, machine, "call") == "2d") calls.box = BoxCall::planes;
        return std::make_unique<CopyExecution>(calls, transfer, *lanes.front());
    }

private:
    static Parameter api() {
        return {.name = "api",
                .description =
                    "cudaMemcpyAsync on a stream (async), the synchronous cudaMemcpy (sync), or, "
                    "between GPUs, cudaMemcpyPeerAsync (peer), which is the default there",
                .choices = {"async", "sync", "peer"}};
    }
    static Parameter peer() {
        return {.name = "peer",
                .description =
                    "direct access between the two GPUs' contexts enabled (on) or not "
                    "(off: the runtime stages through the host)",
                .choices = {"on", "off"}};
    }
    static Parameter call() {
        return {.name = "call",
                .description =
                    "a box by one 3-D copy (cudaMemcpy3DAsync), or by a 2-D copy for each plane "
                    "(cudaMemcpy2DAsync)",
                .choices = {"3d", "2d"}};
    }
    static Parameter submit(std::vector<std::string> choices) {
        return {.name = "submit",
                .description =
                    "NUMA node whose CPUs make the call: the source's nearest, or a "
                    "node's number",
                .choices = std::move(choices)};
    }
    // With one node there is no choice.
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
