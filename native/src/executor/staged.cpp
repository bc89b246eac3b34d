// Copies through rings of pinned slots: threads fill slots from pageable memory or a file, and a
// copy engine empties them, or in the opposite direction. Between two GPUs without peer access, one
// copy engine fills what the other empties.
#include "executor/chunked.hpp"
#include "executor/reach.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class Staged final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "staged",
            .description =
                "threads and copy engines pass chunks through pinned slots, several at once",
            .parameters = parameters_of(host_to_gpu(), {}, true),
            .source =
                "Auto-tuning of Data Communication on Heterogeneous Systems, sec. IV and V (double "
                "buffering, buffer sizes)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {
            .least_bytes = std::size_t{256} << 10,
            .settings_on_request = true,
            .family = Family::staged,
            .shares = {.file_system = false},
            .route = Route::through_host,
            .calls = {{.text = "waywiser.transfer.copy"}},
            .library = {.contiguous = true, .settings = {"chunk", "slots", "threads", "stores"}}};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        if (gpu_of(path) < 0) return "staging is for copies to or from a GPU";
        if (path.source.on_gpu() && path.destination.on_gpu()) {
            if (path.source.place == path.destination.place) return "both sides are of one GPU";
            return std::nullopt;
        }
        const Memory& host = path.source.on_gpu() ? path.destination : path.source;
        if (auto reason = staging_unsupported_reason(host)) return reason;
        if (std::ranges::all_of(machine.numa, [](const NumaNode& n) { return n.cpus.empty(); })) {
            return "no CPU may be used";
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override {
        return parameters_of(transfer.path, machine, transfer.path.destination.on_host());
    }

    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }

    [[nodiscard]] Requirements requirements(const Transfer& transfer,
                                            const Machine& machine) const override {
        Requirements needs;
        const transfer::CopyShape shape = shape_of(*this, transfer, machine);
        needs.threads = shape.threads;
        const std::size_t whole = (transfer.bytes + shape.chunk - 1) / shape.chunk * shape.chunk;
        needs.pinned_bytes = std::min(whole, shape.threads * shape.slots * shape.chunk);
        for (const Memory* side : {&transfer.path.source, &transfer.path.destination}) {
            if (side->on_gpu()) needs.host_links.push_back(side->place.index);
        }
        return needs;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine& engine) const override {
        return std::make_unique<ChunkedExecution>(engine, shape_of(*this, transfer, machine));
    }

private:
    static Path host_to_gpu() {
        return {{"pageable", {Place::Kind::numa, 0, {}}, {}},
                {"device", {Place::Kind::gpu, 0, {}}, {}},
                "staged"};
    }
    static std::vector<Parameter> parameters_of(const Path& path, const Machine& machine,
                                                bool stores) {
        const transfer::CopyShape shape = shipped_shape(path, machine);
        std::vector<Parameter> known{chunk_parameter(shape.chunk), slots_parameter(shape.slots),
                                     threads_parameter(shape.threads, machine)};
        if (stores) known.push_back(stores_parameter(true));
        return known;
    }
};

const Registered<Executor, Staged> registered;

}  // namespace
}  // namespace waywiser
