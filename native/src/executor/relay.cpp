// Copies between host memory and one GPU over the links of several GPUs: chunks from a common queue
// go over the GPU's own link, or over the link of a relay and from there between the GPUs.
#include <algorithm>
#include <sstream>

#include "executor/chunked.hpp"
#include "executor/reach.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr const char* kAll = "all";

std::vector<int> possible_relays(const Path& path, const Machine& machine) {
    std::vector<int> found;
    const GpuPlace* own = machine.gpu(gpu_of(path));
    if (own == nullptr) return found;
    for (const int peer : own->peers) {
        const GpuPlace* other = machine.gpu(peer);
        if (other != nullptr && std::ranges::find(other->peers, own->index) != other->peers.end()) {
            found.push_back(peer);
        }
    }
    return found;
}

class Relay final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "relay",
            .description =
                "chunks to or from one GPU over its own link and the links of other GPUs at once",
            .parameters = {relays({kAll}), chunk_parameter(example().chunk),
                           slots_parameter(example().slots),
                           threads_parameter(example().threads, {}), stores_parameter(true)},
            .source = "none known: docs/transfer.md describes it"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.least_bytes = std::size_t{1} << 20,
                .settings_on_request = true,
                .family = Family::staged,
                .shares = {.file_system = false},
                .route = Route::over_relays,
                .calls = {{.text = "waywiser.transfer.copy with relays"}},
                .library = {.contiguous = true,
                            .settings = {"relays", "chunk", "slots", "threads", "stores"}}};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        if (path.source.on_gpu() == path.destination.on_gpu()) {
            return "relays help between the host and one GPU";
        }
        const Memory& host = path.source.on_gpu() ? path.destination : path.source;
        const Memory& device = path.source.on_gpu() ? path.source : path.destination;
        const MemoryKind* kind = Memories::instance().find(host.kind);
        if (kind == nullptr || (host.in_file() && kind->cpu_accessible())) {
            return "relays do not read mapped files";
        }
        if (auto reason = Memories::instance().find(device.kind)->peer_unsupported_reason(device)) {
            return *reason + ", not of a relay";
        }
        if (possible_relays(path, machine).empty()) {
            return "no other GPU has peer access with gpu:" + std::to_string(gpu_of(path));
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override {
        const Path& path = transfer.path;
        std::vector<std::string> choices{kAll};
        for (const int relay : possible_relays(path, machine)) {
            choices.push_back(std::to_string(relay));
        }
        const Memory& host = path.source.on_gpu() ? path.destination : path.source;
        const transfer::CopyShape shape =
            shipped_shape(path, machine, possible_relays(path, machine));
        std::vector<Parameter> known{relays(std::move(choices)), chunk_parameter(shape.chunk),
                                     slots_parameter(shape.slots)};
        if (known_to_gpus(host)) return known;  // no CPU moves bytes
        known.push_back(threads_parameter(shape.threads, machine));
        if (path.destination.on_host()) known.push_back(stores_parameter(true));
        return known;
    }

    [[nodiscard]] std::optional<bool> peer_access(const Transfer&, const Machine&) const override {
        return true;
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
        const transfer::CopyShape shape = shape_with_relays(transfer, machine);
        const int own = gpu_of(transfer.path);
        const Memory& host =
            transfer.path.source.on_gpu() ? transfer.path.destination : transfer.path.source;
        if (!known_to_gpus(host)) needs.threads = shape.threads;
        needs.host_links.push_back(own);
        const std::size_t whole = (transfer.bytes + shape.chunk - 1) / shape.chunk * shape.chunk;
        const std::size_t in_flight = known_to_gpus(host)
                                          ? shape.slots * shape.chunk
                                          : shape.threads * shape.slots * shape.chunk;
        if (!known_to_gpus(host)) needs.pinned_bytes = std::min(whole, in_flight);
        for (const int relay : shape.relays) {
            needs.host_links.push_back(relay);
            needs.peers.emplace_back(own, relay);
            needs.device_bytes[relay] = std::min(whole, in_flight);
        }
        return needs;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine& engine) const override {
        return std::make_unique<ChunkedExecution>(engine, shape_with_relays(transfer, machine));
    }

private:
    transfer::CopyShape shape_with_relays(const Transfer& transfer, const Machine& machine) const {
        transfer::CopyShape shape = shape_of(*this, transfer, machine);
        const std::string chosen = parameter(*this, transfer, machine, "relays");
        if (chosen == kAll) {
            shape.relays = possible_relays(transfer.path, machine);
        } else {
            std::istringstream stream(chosen);
            for (std::string relay; std::getline(stream, relay, '+');) {
                shape.relays.push_back(std::stoi(relay));
            }
        }
        const Memory& host =
            transfer.path.source.on_gpu() ? transfer.path.destination : transfer.path.source;
        if (known_to_gpus(host)) shape.threads = 1 + shape.relays.size();  // no CPU moves bytes
        return shape;
    }
    static Parameter relays(std::vector<std::string> choices) {
        return {.name = "relays",
                .description = "GPUs whose links help: all that can, or some, as in 1+3",
                .kind = ParameterKind::subset,
                .choices = std::move(choices)};
    }
    // Of pageable memory to a GPU with one relay. Compiled with other files as one, g++ 12 takes
    // its empty strings for uninitialised ones.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
    static transfer::CopyShape example() {
        return shipped_shape({{"pageable", {Place::Kind::numa, 0, {}}, {}},
                              {"device", {Place::Kind::gpu, 0, {}}, {}},
                              "relay"},
                             {}, {1});
    }
#pragma GCC diagnostic pop
};

const Registered<Executor, Relay> registered;

}  // namespace
}  // namespace waywiser
