// Messages of several sizes from each memory of several ranks to each, by four strategies.
#include <algorithm>

#include "executor/alltoall_executor.hpp"

namespace waywiser {
namespace {

constexpr const char* kCounts = "counts";
constexpr const char* kNeighbours = "neighbours";

class Alltoallv final : public alltoall::AlltoallExecutor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info = made_info();
        return info;
    }
    [[nodiscard]] Traits traits() const override { return traits_of_exchanges(); }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override {
        std::vector<Parameter> known = AlltoallExecutor::parameters(transfer, machine);
        for (Parameter& parameter : known) {
            if (parameter.name == kCounts) add_file(parameter, transfer);
            if (parameter.name == kNeighbours && transfer.path.source.at_rank()) {
                narrow(parameter,
                       alltoall::ranks_of_memories(transfer.path.source, machine).size());
            }
        }
        return known;
    }

private:
    static Info made_info() {
        Info info{.name = "alltoallv",
                  .description =
                      "each of several ranks sends to each, messages of several sizes; "
                      "the bytes are those of the GPU that sends most",
                  .parameters = common_parameters(),
                  .source =
                      "Bienz et al., Modeling Data Movement Performance on Heterogeneous "
                      "Architectures, sec. III (strategies) and V (duplicate data); "
                      "nccl-tests (traffic matrix); OSU micro-benchmarks (osu_alltoallv)"};
        info.parameters.push_back(
            {.name = kCounts,
             .description = "sizes: equal; equal to some neighbours and none to others; in "
                            "proportion to 1/n to the n-th GPU; or the absolute path of a file "
                            "with a traffic matrix of nccl-tests, whose numbers are proportions",
             .choices = {"equal", kNeighbours, "skewed"}});
        info.parameters.push_back({.name = kNeighbours,
                                   .description = "GPUs that each sends to with counts=neighbours",
                                   .kind = ParameterKind::ordered,
                                   .choices = {"2", "1", "4", "8"}});
        return info;
    }

    // The file that the transfer names is one of its choices.
    static void add_file(Parameter& counts, const Transfer& transfer) {
        const auto named = transfer.parameters.find(kCounts);
        if (named != transfer.parameters.end() && named->second.starts_with('/')) {
            counts.choices.push_back(named->second);
        }
    }

    static void narrow(Parameter& neighbours, std::size_t memories) {
        std::erase_if(neighbours.choices,
                      [&](const std::string& n) { return n != "1" && std::stoul(n) >= memories; });
    }

    [[nodiscard]] alltoall::Counts counts(const Transfer& transfer, const Machine& machine,
                                          std::size_t memories) const override {
        const std::string chosen = parameter(*this, transfer, machine, kCounts);
        return alltoall::counts_of(weights(chosen, transfer, machine, memories), transfer.bytes);
    }
    [[nodiscard]] alltoall::Weights weights(const std::string& chosen, const Transfer& transfer,
                                            const Machine& machine, std::size_t memories) const {
        if (chosen == kNeighbours) {
            const std::size_t neighbours = number(transfer, machine, kNeighbours);
            return alltoall::weights_of_neighbours(memories, neighbours);
        }
        if (chosen == "equal") return alltoall::equal_weights(memories);
        if (chosen == "skewed") return alltoall::skewed_weights(memories);
        return alltoall::weights_in_file(chosen, memories);
    }
    [[nodiscard]] bool equal() const override { return false; }
};

const Registered<Executor, Alltoallv> registered;

}  // namespace
}  // namespace waywiser
