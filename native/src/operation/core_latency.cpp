// Memory latency of a core: dependent loads.
#include <algorithm>
#include <memory>
#include <vector>

#include "host/cache.hpp"
#include "host/pages.hpp"
#include "host/parallel.hpp"
#include "operation/cycle.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kCached = std::size_t{64} << 20;  // bytes; larger chases must miss the caches
constexpr std::size_t kApart = 256;  // bytes between two cells, more than prefetchers cover

class ChaseTrial final : public Trial {
public:
    ChaseTrial(std::size_t bytes, const NumaNode& node)
        : pages_(bytes, node, host::PageSize::huge) {
        const Cycle cycle{pages_.data(), kApart, Order(std::max<std::size_t>(bytes / kApart, 2))};
        host::parallel(cycle.order.cells() * kApart, node.cpus,
                       [&cycle](std::size_t from, std::size_t to) {
                           for (std::size_t i = from / kApart; i < to / kApart; ++i) cycle.link(i);
                       });
        at_ = cycle.cell(0);
        if (bytes <= kCached || host::flush_instruction().empty()) {
            at_ = follow(at_, cycle.order.cells());  // a chase that fits into a cache is in it now
        } else {
            host::flush(pages_.data(), bytes, node.cpus);  // what was linked last is in a cache
        }
    }
    double run(std::size_t repetitions) override {
        return timed([&] { at_ = follow(at_, repetitions); });
    }

private:
    host::Pages pages_;
    const Cell* volatile at_ = nullptr;  // so that the compiler keeps the loads
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
