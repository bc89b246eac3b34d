// Copies by CPU threads: memcpy, or non-temporal stores.
#include <algorithm>

#include "executor/cpu_mover.hpp"
#include "host/streaming.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class CpuExecution final : public Execution {
public:
    CpuExecution(const std::vector<int>& cpus, std::size_t threads, bool streaming)
        : mover_(cpus, threads, streaming) {}

    void wake() override { mover_.wake(); }
    void start(const View& source, const View& destination) override {
        mover_.move(destination, source);
    }

private:
    CpuMover mover_;
};

class Cpu final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "cpu",
            .description = "threads of the CPU load and store every byte",
            .parameters = {threads({"1"}), stores(), side()},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019 (libc memcpy between NUMA nodes); "
                "Pearson, thesis, ch. Explicit Memory Performance"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.family = Family::cpu,
                .shares = {.links = false, .file_system = false},
                .reference = PathClass::host,
                .calls = {{.text = "copy with streaming stores",
                           .settings = {{"stores", "streaming"}},
                           .defaults = {{"threads", "1"}}},
                          {.text = "memcpy", .defaults = {{"threads", "1"}}}},
                .library = {.contiguous = true, .settings = {"threads", "stores"}}};
    }

    [[nodiscard]] bool serves(Layout::Kind) const override { return true; }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        for (const Memory* memory : {&path.source, &path.destination}) {
            const MemoryKind* kind = Memories::instance().find(memory->kind);
            if (kind == nullptr || !kind->cpu_accessible()) {
                return "the CPU cannot address " + memory->kind + " memory";
            }
        }
        if (path.source.place.kind == Place::Kind::file &&
            path.destination.place.kind == Place::Kind::file) {
            return "both ends are files: no node says whose CPUs should copy";
        }
        if (sides(path, machine).empty()) return "no CPU of either node may be used";
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override {
        const Path& path = transfer.path;
        const std::vector<std::string> by = sides(path, machine);
        std::size_t most = by.empty() ? 1 : cpus(path, by.front(), machine).size();
        for (const std::string& one : by) most = std::min(most, cpus(path, one, machine).size());
        std::vector<Parameter> known{threads(thread_choices(most))};
        if (!host::streaming_instructions().empty()) known.push_back(stores());
        if (path.source.place != path.destination.place && !by.empty()) {
            known.push_back(side());
            known.back().choices = by;
        }
        return known;
    }

    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }
    [[nodiscard]] int submit_node(const Transfer& transfer, const Machine& machine) const override {
        const bool push = parameter(*this, transfer, machine, "side") == "push";
        return (push ? transfer.path.source : transfer.path.destination).place.index;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine&) const override {
        const auto count = std::stoul(parameter(*this, transfer, machine, "threads"));
        const bool streaming = parameter(*this, transfer, machine, "stores") == "streaming";
        const auto own = cpus(transfer.path, parameter(*this, transfer, machine, "side"), machine);
        return std::make_unique<CpuExecution>(own, count, streaming);
    }

private:
    static Parameter threads(std::vector<std::string> choices) {
        return {.name = "threads",
                .description = "how many pinned threads share the copy, from 1 to all of the node",
                .kind = ParameterKind::ordered,
                .choices = std::move(choices)};
    }
    static Parameter stores() {
        return {.name = "stores",
                .description =
                    "ordinary stores (memcpy), or streaming: non-temporal, around the "
                    "caches",
                .choices = {"ordinary", "streaming"}};
    }
    static Parameter side() {
        return {.name = "side",
                .description = "whose CPUs copy: the destination's (pull) or the source's (push)",
                .choices = {"pull", "push"}};
    }
    static std::vector<int> cpus(const Path& path, const std::string& side,
                                 const Machine& machine) {
        return machine.cpus((side == "push" ? path.source : path.destination).place);
    }
    // The sides with CPUs: a node may have only memory.
    static std::vector<std::string> sides(const Path& path, const Machine& machine) {
        std::vector<std::string> found;
        for (const char* side : {"pull", "push"}) {
            if (!cpus(path, side, machine).empty()) found.emplace_back(side);
        }
        return found;
    }
};

const Registered<Executor, Cpu> registered;

}  // namespace
}  // namespace waywiser
