// How long a core waits for memory: loads that each need the one before.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "host/clock.hpp"
#include "host/pages.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kApart = 256;  // bytes between two cells: no prefetcher brings the next along
constexpr std::uint64_t kSeed = 1;   // of the order; any will do, always the same is repeatable

// Cells of a range linked into one cycle in random order.
class Cycle {
public:
    Cycle(std::size_t bytes, const NumaNode& node)
        : pages_(bytes, node, host::PageSize::huge), at_(link(bytes)) {}

    // Follows so many links; what it returns depends on every load.
    const void* follow(std::size_t links) {
        const Cell* at = at_;
        for (std::size_t i = 0; i < links; ++i) at = at->next;
        at_ = at;
        return at;
    }

private:
    struct Cell {
        const Cell* next;
    };

    const Cell* link(std::size_t bytes) {
        const std::size_t cells = std::max<std::size_t>(bytes / kApart, 2);
        std::vector<std::size_t> order(cells);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed));
        const auto cell = [&](std::size_t i) {
            return reinterpret_cast<Cell*>(pages_.data() + order[i % cells] * kApart);
        };
        for (std::size_t i = 0; i < cells; ++i) cell(i)->next = cell(i + 1);
        return cell(0);
    }

    host::Pages pages_;
    const Cell* at_;
};

class ChaseTrial final : public Trial {
public:
    ChaseTrial(std::size_t bytes, const NumaNode& node) : cycle_(bytes, node) {
        cycle_.follow(bytes / kApart);  // once around: what fits into a cache is in it
    }
    double run(std::size_t repetitions) override {
        const double start = host::now();
        last_ = cycle_.follow(repetitions);
        return host::now() - start;
    }

private:
    Cycle cycle_;
    const void* volatile last_ = nullptr;  // so that nobody proves the loads useless
};

class CoreLatency final : public Operation {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "core-latency",
            .description = "one load of a core that waits for it: a step of a pointer chase",
            .parameters = {range(), memory({"0"})},
            .source = "McVoy & Staelin, lmbench, USENIX ATC 1996 (lat_mem_rd)"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Place& place,
                                                    const Machine& machine) const override {
        std::vector<std::string> nodes{std::to_string(place.index)};
        for (const NumaNode& node : machine.numa) {
            if (node.index != place.index) nodes.push_back(std::to_string(node.index));
        }
        return {range(), memory(std::move(nodes))};
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools&) const override {
        const auto bytes = std::stoul(parameter(*this, call, machine, "bytes"));
        const int node = std::stoi(parameter(*this, call, machine, "memory"));
        return std::make_unique<ChaseTrial>(bytes, *machine.node(node));
    }

private:
    static Parameter range() {
        return {.name = "bytes",
                .description = "that the chase runs through: within a cache, or beyond all",
                .kind = ParameterKind::ordered,
                .choices = {"268435456", "16384", "524288", "16777216"}};
    }
    static Parameter memory(std::vector<std::string> nodes) {
        return {.name = "memory",
                .description = "NUMA node whose memory is read: the core's own, or another's",
                .choices = std::move(nodes)};
    }
};

const Registered<Operation, CoreLatency> registered;

}  // namespace
}  // namespace waywiser
