// Latency of handing a cache line from the core that wrote it to a core that waits for it.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/affinity.hpp"
#include "host/relax.hpp"
#include "host/start_thread.hpp"
#include "operation/timed.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kLeast = 64;  // handovers per sample
constexpr std::size_t kMost = 1 << 16;
constexpr int kSpins = 1 << 14;  // spins before yielding the core

// A counter in its own cache line; two threads increment it in turn.
class Turn {
public:
    void pass(std::uint32_t to) { value_.store(to, std::memory_order_release); }
    void await(std::uint32_t expected) const {
        for (int spins = 0; value_.load(std::memory_order_acquire) != expected; ++spins) {
            host::relax();
            if (spins >= kSpins) std::this_thread::yield();
        }
    }

private:
    alignas(256) std::atomic<std::uint32_t> value_{0};  // also pads the object
};

class HandoverTrial final : public Trial {
public:
    HandoverTrial(int one, int other) : one_(one), other_(other) {}

    double run(std::size_t repetitions) override {
        const auto rounds = static_cast<std::uint32_t>((repetitions + 1) / 2);
        Turn turn;
        const std::jthread partner = host::start_thread([&turn, rounds, cpu = other_] {
            host::run_on({cpu});
            for (std::uint32_t round = 0; round <= rounds; ++round) {
                turn.await(2 * round + 1);
                turn.pass(2 * round + 2);
            }
        });
        const host::RunOn here({one_});
        turn.pass(1);  // and back: the partner is ready
        turn.await(2);
        const double seconds = timed([&] {
            for (std::uint32_t round = 1; round <= rounds; ++round) {
                turn.pass(2 * round + 1);
                turn.await(2 * round + 2);
            }
        });
        return seconds * static_cast<double>(repetitions) / (2.0 * rounds);
    }
    [[nodiscard]] std::size_t least_repetitions() const override { return kLeast; }
    [[nodiscard]] std::size_t most_repetitions() const override { return kMost; }

private:
    int one_;
    int other_;
};

class CoreToCore final : public Operation {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "core-to-core",
            .description =
                "handing a cache line from the first CPU of a node to another that "
                "waits for it",
            .parameters = {to({"0"})},
            .source =
                "Molka et al., Memory Performance and Cache Coherency Effects on an Intel "
                "Nehalem Multiprocessor System, PACT 2009"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Place& place,
                                                    const Machine& machine) const override {
        std::vector<std::string> nodes{std::to_string(place.index)};
        for (const NumaNode& node : machine.numa) {
            if (node.index != place.index && !node.cpus.empty()) {
                nodes.push_back(std::to_string(node.index));
            }
        }
        return {to(std::move(nodes))};
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const OperationCall& call, const Machine& machine) const override {
        const NumaNode& one = *machine.node(call.place.index);
        const NumaNode& other = *machine.node(std::stoi(parameter(*this, call, machine, "to")));
        if (!one.cpus.empty() && !other.cpus.empty() && one.cpus.front() != other.cpus.back()) {
            return std::nullopt;
        }
        return "there are no two CPUs at " + call.place.text() + " that may be used";
    }
    [[nodiscard]] std::unique_ptr<Trial> prepare(const OperationCall& call, const Machine& machine,
                                                 OperationTools&) const override {
        const NumaNode& other = *machine.node(std::stoi(parameter(*this, call, machine, "to")));
        return std::make_unique<HandoverTrial>(machine.node(call.place.index)->cpus.front(),
                                               other.cpus.back());
    }

private:
    static Parameter to(std::vector<std::string> nodes) {
        return {.name = "to",
                .description = "NUMA node whose last CPU waits: the first CPU's own, or another",
                .choices = std::move(nodes)};
    }
};

const Registered<Operation, CoreToCore> registered;

}  // namespace
}  // namespace waywiser
