#include "executor/alltoall_executor.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "executor/alltoall_execution.hpp"
#include "gpu/gpu.hpp"
#include "unsupported_reasons.hpp"

namespace waywiser::alltoall {
namespace {

constexpr std::array kStrategies = {std::pair{"3-step", Strategy::three_step},
                                    std::pair{"direct", Strategy::direct},
                                    std::pair{"extra-message", Strategy::extra_message},
                                    std::pair{"duplicate-pointer", Strategy::duplicate_pointer}};
// How often the same bytes are sent.
constexpr std::array kShares = {std::pair{"1", std::size_t{1}}, std::pair{"1/2", std::size_t{2}},
                                std::pair{"1/4", std::size_t{4}}};

template <class Table>
std::vector<std::string> names_in(const Table& table) {
    std::vector<std::string> names;
    for (const auto& [name, value] : table) names.emplace_back(name);
    return names;
}

// nullptr if it has none of that name.
template <class Table>
const Table::value_type* found_in(const Table& table, const std::string& name) {
    const auto found =
        std::ranges::find_if(table, [&](const auto& each) { return name == each.first; });
    return found == table.end() ? nullptr : &*found;
}

bool uses_several(Strategy strategy) {
    return strategy == Strategy::extra_message || strategy == Strategy::duplicate_pointer;
}

Memory first_local(const Memory& memory, const Machine& machine) {
    return local_memory(memory.each().front(), machine);
}

// Returns the smallest number of processes that share a memory.
std::size_t processes(const std::vector<std::vector<int>>& ranks) {
    return std::ranges::min(ranks, {}, [](const auto& each) { return each.size(); }).size();
}

Parameter& named(std::vector<Parameter>& parameters, const std::string& name) {
    return *std::ranges::find(parameters, name, &Parameter::name);
}

// All processes of a GPU first, then powers of two below.
std::vector<std::string> choices_up_to(std::size_t most) {
    std::vector<std::string> choices{std::to_string(most)};
    for (std::size_t n = 1; n < most; n *= 2) choices.push_back(std::to_string(n));
    return choices;
}

// Memory that another process can open is that of cudaMalloc.
std::optional<std::string> sharing_unsupported_reason(const Memory& memory,
                                                      const Machine& machine) {
    const auto from = memory.variant.find("from");
    if (from != memory.variant.end() && from->second != "malloc" && from->second != "ipc") {
        return "duplicate pointers are not to memory from " + from->second;
    }
    for (const Memory& single : memory.each()) {
        const int gpu = local_memory(single, machine).place.index;
        if (gpu < gpu::device_count() && !gpu::device(gpu).ipc) {
            return "gpu:" + std::to_string(gpu) + " shares no memory between processes";
        }
    }
    return std::nullopt;
}

}  // namespace

std::vector<Parameter> AlltoallExecutor::common_parameters() {
    return {{.name = "strategy",
             .description =
                 "one process of each GPU copies, sends and copies; messages from memory as "
                 "it is; the process that copies hands parts to others in one more message; "
                 "or each copies its own part, by a pointer to memory that one process holds "
                 "for all",
             .choices = names_in(kStrategies)},
            {.name = "per-gpu",
             .description = "processes of each GPU that send and receive",
             .kind = ParameterKind::ordered,
             .choices = {"1", "2", "4", "8"}},
            {.name = "split",
             .description = "each process sends a part of each message, or whole messages",
             .choices = {"bytes", "messages"}},
            {.name = "unique",
             .description = "the share of all sent bytes that differ; a GPU's own are copied once",
             .choices = names_in(kShares)},
            {.name = "exchange",
             .description = "one call for all messages, or sends and receives between pairs",
             .choices = {"collective", "pairs"}}};
}

Traits AlltoallExecutor::traits_of_exchanges() {
    return {.survey_only = true,
            .settings_on_request = true,
            .among_ranks = true,
            .family = Family::staged,
            .shares = {.file_system = false},
            .route = Route::between_ranks};
}

std::optional<std::string> AlltoallExecutor::unsupported_reason(const Transfer& transfer,
                                                                const Machine& machine) const {
    const auto& [source, destination, executor] = transfer.path;
    if (!source.place.several() || source.place != destination.place) {
        return executor + " is among the same ranks at both ends: write rank:0-7";
    }
    for (const Memory& single : source.each()) {
        const Memory other{destination.kind, single.place, destination.variant};
        if (local_memory(single, machine).place != local_memory(other, machine).place) {
            return "both ends of an exchange are on GPUs, or both on the host";
        }
    }
    if (auto reason = bad_setting(executor, parameters(transfer, machine), transfer.parameters)) {
        return reason;
    }
    if (auto reason = strategy_unsupported_reason(transfer, machine)) return reason;
    try {
        (void)counts(transfer, machine, ranks_of_memories(source, machine).size());
    } catch (const NotSupported& error) {
        return error.what();
    }
    return BetweenRanks::unsupported_reason(transfer, machine);
}

std::optional<std::string> AlltoallExecutor::strategy_unsupported_reason(
    const Transfer& transfer, const Machine& machine) const {
    const Strategy chosen = strategy(transfer, machine);
    for (const char* name : {"per-gpu", "split", "unique"}) {
        const bool of_lanes = std::string(name) != "unique";
        if (!transfer.parameters.contains(name)) continue;
        if (chosen == Strategy::direct || (chosen == Strategy::three_step && of_lanes)) {
            return info().name + "[strategy=" + parameter(*this, transfer, machine, "strategy") +
                   "] has no '" + name + "'";
        }
    }
    if (uses_several(chosen) && processes(ranks_of_memories(transfer.path.source, machine)) == 1) {
        return "each GPU has one process: strategy=" +
               parameter(*this, transfer, machine, "strategy") + " is for several";
    }
    if (chosen == Strategy::direct &&
        parameter(*this, transfer, machine, "exchange") == "collective") {
        for (const Memory* memory : {&transfer.path.source, &transfer.path.destination}) {
            if (!is_unexchanged(*memory, machine)) continue;
            return "collective calls of the MPI library do not take " + memory->kind +
                   " memory: use exchange=pairs";
        }
    }
    if (chosen != Strategy::duplicate_pointer) return std::nullopt;
    for (const Memory* memory : {&transfer.path.source, &transfer.path.destination}) {
        if (auto reason = sharing_unsupported_reason(*memory, machine)) return reason;
    }
    return std::nullopt;
}

std::size_t AlltoallExecutor::message_bytes(const Transfer& transfer,
                                            const Machine& machine) const {
    return plan(transfer, machine).most_bytes();
}

std::vector<Parameter> AlltoallExecutor::parameters(const Transfer& transfer,
                                                    const Machine& machine) const {
    std::vector<Parameter> known = info().parameters;
    const Memory& memory = transfer.path.source;
    if (!memory.at_rank()) return known;
    const auto ranks = ranks_of_memories(memory, machine);
    std::vector<std::string>& strategies = named(known, "strategy").choices;
    if (!first_local(memory, machine).on_gpu()) {
        strategies = {"direct"};
    } else if (is_unsent(memory, machine) || is_unsent(transfer.path.destination, machine)) {
        std::erase(strategies, "direct");
    }
    named(known, "per-gpu").choices = choices_up_to(processes(ranks));
    std::erase_if(named(known, "unique").choices, [&](const std::string& share) {
        return found_in(kShares, share)->second > ranks.size();
    });
    return known;
}

Strategy AlltoallExecutor::strategy(const Transfer& transfer, const Machine& machine) const {
    const std::string chosen = parameter(*this, transfer, machine, "strategy");
    if (const auto* const found = found_in(kStrategies, chosen)) return found->second;
    throw NotSupported(info().name + " has no strategy=" + chosen);
}

Plan AlltoallExecutor::plan(const Transfer& transfer, const Machine& machine) const {
    const auto is = [&](const char* name, const char* value) {
        return parameter(*this, transfer, machine, name) == value;
    };
    Plan plan;
    plan.strategy = strategy(transfer, machine);
    plan.whole = is("split", "messages");
    plan.pairs = is("exchange", "pairs");
    plan.ranks = ranks_of_memories(transfer.path.source, machine);
    const std::size_t lanes =
        uses_several(plan.strategy) ? number(transfer, machine, "per-gpu") : 1;
    for (std::vector<int>& ranks : plan.ranks) ranks.resize(lanes);
    const auto* const share = found_in(kShares, parameter(*this, transfer, machine, "unique"));
    const std::size_t copies = share == nullptr ? 1 : share->second;
    plan.messages = messages_of(counts(transfer, machine, plan.memories()), copies);
    plan.even = equal() && copies == 1 && (!plan.whole || lanes == 1);
    return plan;
}

Requirements AlltoallExecutor::requirements(const Transfer& transfer,
                                            const Machine& machine) const {
    const Plan planned = plan(transfer, machine);
    Requirements needs;
    needs.pinned_bytes = staging_bytes(planned);
    for (const std::vector<int>& ranks : planned.ranks) {
        if (planned.staged()) needs.host_links.push_back(machine.rank(ranks.front())->gpu);
    }
    return needs;
}

std::vector<int> AlltoallExecutor::participants(const Transfer& transfer,
                                                const Machine& machine) const {
    return plan(transfer, machine).participants();
}

Memory AlltoallExecutor::allocated(const Transfer& transfer, const Memory& local,
                                   const Machine& machine) const {
    Memory memory = local;
    if (strategy(transfer, machine) == Strategy::duplicate_pointer) memory.variant["from"] = "ipc";
    return memory;
}

Exchange AlltoallExecutor::exchange(const Transfer& transfer, const Machine& machine) const {
    return exchange_of(plan(transfer, machine), transfer);
}

std::unique_ptr<Execution> AlltoallExecutor::prepare_part(
    const Transfer& transfer, const Machine& machine, const View& source, const View& destination,
    const std::vector<gpu::Stream*>& lanes, ranks::Messenger& group) const {
    return alltoall::prepare(plan(transfer, machine), source, destination,
                             lanes.empty() ? nullptr : lanes.front(), group);
}

}  // namespace waywiser::alltoall
