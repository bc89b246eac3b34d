// Copies by CPU threads: memcpy, or stores that go around the caches.
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "host/affinity.hpp"
#include "host/streaming.hpp"
#include "host/team.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kLine = 64;  // shares are cut at cache lines, so that no two threads meet

// The thread that starts the copy takes the first share; a team of the others takes the rest.
class CpuExecution final : public Execution {
public:
    CpuExecution(const std::vector<int>& cpus, std::size_t threads, bool streaming)
        : threads_(threads), streaming_(streaming), team_(others(cpus, threads)) {}

    // Sleeping threads take up to a fifth of a millisecond to wake, which is not the copy's time.
    void wake() override {
        const std::function<void(std::size_t)> nothing = [](std::size_t) {};
        team_.start(nothing);
        team_.join();
    }

    void start(const View& source, const View& destination) override {
        if (threads_ == 1) {
            copy(destination.data, source.data, source.bytes);
            return;
        }
        const auto share = [&](std::size_t thread) {
            const std::size_t piece =
                (source.bytes + threads_ * kLine - 1) / (threads_ * kLine) * kLine;
            const std::size_t from = std::min(source.bytes, thread * piece);
            const std::size_t to = std::min(source.bytes, from + piece);
            copy(destination.data + from, source.data + from, to - from);
        };
        const std::function<void(std::size_t)> others_job = [&](std::size_t i) { share(i + 1); };
        team_.start(others_job);
        share(0);
        team_.join();
    }

private:
    static std::vector<std::vector<int>> others(const std::vector<int>& cpus, std::size_t threads) {
        std::vector<std::vector<int>> team;
        for (std::size_t i = 1; i < threads; ++i) team.push_back({cpus[i % cpus.size()]});
        return team;
    }

    void copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
        if (streaming_) {
            host::copy_streaming(to, from, bytes);
        } else {
            std::memcpy(to, from, bytes);
        }
    }

    std::size_t threads_;
    bool streaming_;
    host::Team team_;
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

    [[nodiscard]] std::optional<std::string> refusal(const Transfer& transfer,
                                                     const Machine& machine) const override {
        const Path& path = transfer.path;
        for (const Memory* memory : {&path.source, &path.destination}) {
            const MemoryKind* kind = Memories::instance().find(memory->kind);
            if (kind == nullptr || !kind->cpu_accessible()) {
                return "the CPU cannot address " + memory->kind + " memory";
            }
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

    [[nodiscard]] std::unique_ptr<Execution> prepare(
        const Transfer& transfer, const Machine& machine,
        const std::vector<gpu::Stream*>&) const override {
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
    // Those with CPUs: a node may have memory alone.
    static std::vector<std::string> sides(const Path& path, const Machine& machine) {
        std::vector<std::string> found;
        for (const char* side : {"pull", "push"}) {
            if (!cpus(path, side, machine).empty()) found.emplace_back(side);
        }
        return found;
    }
    // 1, 2, 4, ... and all.
    static std::vector<std::string> thread_choices(std::size_t most) {
        std::vector<std::string> choices;
        for (std::size_t n = 1; n < most; n *= 2) choices.push_back(std::to_string(n));
        choices.push_back(std::to_string(std::max<std::size_t>(most, 1)));
        return choices;
    }
};

const Registered<Executor, Cpu> registered;

}  // namespace
}  // namespace waywiser
