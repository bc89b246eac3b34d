// Copies lists whose host side is contiguous: a kernel gathers or scatters chunks in staging memory
// of the GPU, while a copy engine moves other chunks.
#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/reach.hpp"
#include "executor/runs.hpp"
#include "gpu/gpu.hpp"
#include "transfer/engine.hpp"
#include "transfer/list_pipeline.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

using transfer::ListPipeline;
using transfer::PipelineShape;

class GatherScatterExecution final : public Execution {
public:
    GatherScatterExecution(const Transfer& transfer, gpu::Stream& stream,
                           const PipelineShape& shape, transfer::Slot staging)
        : to_host_(transfer.path.source.on_gpu()),
          stream_(stream),
          host_(arrange(transfer, to_host_ ? Side::destination : Side::source)),
          scattered_(arrange(transfer, to_host_ ? Side::source : Side::destination)),
          table_(&scattered_, stream.device()),
          staging_(std::move(staging)),
          pipeline_(stream.device(), staging_.data(), shape) {}

    void start(const View& source, const View& destination) override {
        const View& host = to_host_ ? destination : source;
        const View& on_gpu = to_host_ ? source : destination;
        check_arrangement(host, host_);
        const Runs runs = table_.of(on_gpu, on_gpu.data);
        const PipelineShape& shape = pipeline_.shape();
        pipeline_.start_after(stream_, runs.count * runs.run);
        if (to_host_) {
            pipeline_.gather(host.data, runs, shape.chunk, shape.blocks);
        } else {
            pipeline_.scatter(runs, host.data, shape.chunk, shape.blocks);
        }
        pipeline_.finish_before(stream_);
    }

    void finish() override { stream_.synchronize(); }

private:
    const bool to_host_;
    gpu::Stream& stream_;
    const Arrangement host_;
    const Arrangement scattered_;
    const RunTable table_;
    const transfer::Slot staging_;
    ListPipeline pipeline_;
};

class GatherScatter final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "gather-scatter",
            .description =
                "a kernel gathers or scatters a list in staging memory of the GPU, in "
                "chunks, while the copy engine moves others",
            .parameters = {chunk(), slots(), blocks()},
            .source =
                "double buffering (Auto-tuning of Data Communication on Heterogeneous "
                "Systems, sec. IV) of pack and unpack (Pearson et al., TEMPI, HPDC 2021)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.family = Family::kernel,
                .shares = {.host_memory = false, .cpus = false, .file_system = false},
                .calls = {{.text = "waywiser.transfer.copy_blocks"}},
                .library = {.lists = true, .settings = {"chunk", "slots", "blocks"}}};
    }

    [[nodiscard]] bool serves(Layout::Kind kind) const override {
        return kind == Layout::Kind::list;
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(const Transfer& transfer,
                                                                const Machine&) const override {
        const Path& path = transfer.path;
        if (path.source.on_gpu() == path.destination.on_gpu()) {
            return "the pieces are gathered for a copy over a GPU's link to the host";
        }
        const Memory& host = path.source.on_gpu() ? path.destination : path.source;
        if (!host.on_host() || !known_to_gpus(host)) {
            return "a copy engine reaches only page-locked memory beside kernels, and " +
                   host.kind + " memory is not";
        }
        const auto scattered = transfer.layout.settings.find("scattered");
        const std::string sides =
            scattered == transfer.layout.settings.end() ? "both" : scattered->second;
        if (sides != (path.source.on_gpu() ? "source" : "destination")) {
            return "the pieces have to be contiguous in host memory: scattered=" +
                   std::string(path.source.on_gpu() ? "source" : "destination");
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {chunk(), slots(), blocks()};
    }

    // A gate holds a limited number of entries of a stream, and each chunk has several. Host timing
    // also includes the cost of submitting them.
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        const Path& path = transfer.path;
        return {(path.source.on_gpu() ? path.source : path.destination).place.index};
    }

    [[nodiscard]] Requirements requirements(const Transfer& transfer,
                                            const Machine& machine) const override {
        Requirements needs = Executor::requirements(transfer, machine);
        needs.device_bytes[lanes(transfer, machine).front()] =
            std::bit_ceil(shape_of(transfer, machine).bytes()) + table_bytes(transfer, 1);
        return needs;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine& engine) const override {
        const PipelineShape shape = shape_of(transfer, machine);
        auto staging = engine.device_staging(lanes.front()->device(), shape.bytes());
        if (!staging) {
            throw NotSupported("others hold the staging memory of gpu:" +
                               std::to_string(lanes.front()->device()) + ": allow more memory");
        }
        return std::make_unique<GatherScatterExecution>(transfer, *lanes.front(), shape,
                                                        std::move(*staging));
    }

private:
    [[nodiscard]] PipelineShape shape_of(const Transfer& transfer, const Machine& machine) const {
        const auto number = [&](const char* name) {
            return std::stoul(parameter(*this, transfer, machine, name));
        };
        PipelineShape shape{.chunk = number("chunk"),
                            .slots = number("slots"),
                            .blocks = static_cast<unsigned>(number("blocks"))};
        // A chunk holds at least one piece, and slots are aligned like allocations.
        const auto piece = transfer.layout.settings.find("piece");
        if (piece != transfer.layout.settings.end() && !layout_unsupported_reason(transfer)) {
            shape.chunk = std::max<std::size_t>(shape.chunk, std::stoull(piece->second));
        }
        constexpr std::size_t kAlignment = 256;
        shape.chunk = (shape.chunk + kAlignment - 1) / kAlignment * kAlignment;
        return shape;
    }
    static Parameter chunk() {
        return {.name = "chunk",
                .description = "bytes that are gathered or scattered at once",
                .kind = ParameterKind::ordered,
                .choices = {"8388608", "1048576", "2097152", "4194304"}};
    }
    static Parameter slots() {
        return {.name = "slots",
                .description = "chunks in staging memory of the GPU",
                .kind = ParameterKind::ordered,
                .choices = {"3", "2", "4"}};
    }
    static Parameter blocks() {
        return {.name = "blocks",
                .description = "thread blocks of a kernel, each of which fills a multiprocessor",
                .kind = ParameterKind::ordered,
                .choices = {"8", "1", "2", "4", "16"}};
    }
};

const Registered<Executor, GatherScatter> registered;

}  // namespace
}  // namespace waywiser
