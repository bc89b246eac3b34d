// Copies between GPUs and collectives among them by NCCL: the GPUs of this process, or those of
// ranks.
#include <mutex>
#include <set>

#include "executor/nccl_between_ranks.hpp"
#include "executor/nccl_collective.hpp"
#include "executor/reach.hpp"
#include "gpu/gpu.hpp"
#include "nccl/communicators.hpp"
#include "nccl/library.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

using nccl::Collective;
using nccl::Shape;

// A start adds kernels, waits and events to each stream, and takes a part of a queue of the
// library's own that has no more than some hundreds of places. It blocks the host if that is full.
constexpr std::size_t kEntries = 16;
std::vector<int> gpus_of(const Path& path) {
    if (!path.source.place.several()) {
        return {path.source.place.index, path.destination.place.index};
    }
    std::vector<int> gpus;
    for (const Place& place : path.source.place.each()) gpus.push_back(place.index);
    return gpus;
}

// Calls between these are one operation of several GPUs.
class Group {
public:
    Group() { nccl::check(nccl::functions().group_start(), "ncclGroupStart"); }
    ~Group() {
        if (!ended_) nccl::functions().group_end();
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    void end() {
        ended_ = true;
        nccl::check(nccl::functions().group_end(), "ncclGroupEnd");
    }

private:
    bool ended_ = false;
};

class NcclExecution final : public Execution {
public:
    NcclExecution(Collective collective, nccl::Type type, std::size_t bytes,
                  const std::vector<int>& gpus, std::vector<gpu::Stream*> lanes)
        : collective_(collective),
          type_(type),
          window_(nccl::calls_in_a_row(bytes)),
          nccl_(nccl::functions()),
          communicators_(nccl::take_communicators(gpus)),
          lanes_(std::move(lanes)) {}

    void start(const View& source, const View& destination) override {
        // Two threads must not start collectives in different orders on two GPUs: each GPU would
        // wait for the other one.
        static std::mutex starting;
        const std::lock_guard lock(starting);
        Group group;
        if (collective_ == Collective::send) {
            send(0, source.data, source.bytes, 1);
            receive(1, destination.data, source.bytes, 0);
        } else {
            const Shape shape = nccl::shape_of(collective_, source.bytes, lanes_.size());
            for (std::size_t n = 0; n < lanes_.size(); ++n) {
                nccl::enqueue({.collective = collective_,
                               .type = type_,
                               .from = source.each[n] + source.offset,
                               .to = destination.each[n] + destination.offset,
                               .shape = shape,
                               .communicator = communicators_->of(n),
                               .stream = lanes_[n]->handle()});
            }
        }
        group.end();
    }

    void finish() override {
        for (const gpu::Stream* lane : lanes_) lane->synchronize();
    }

    [[nodiscard]] std::size_t entries() const override { return kEntries; }
    [[nodiscard]] std::size_t window() const override { return window_; }

private:
    void send(std::size_t n, const std::byte* data, std::size_t bytes, std::size_t to) const {
        nccl::check(nccl_.send(data, bytes, nccl::Type::int8, static_cast<int>(to),
                               communicators_->of(n), lanes_[n]->handle()),
                    "ncclSend");
    }

    void receive(std::size_t n, std::byte* data, std::size_t bytes, std::size_t from) const {
        nccl::check(nccl_.recv(data, bytes, nccl::Type::int8, static_cast<int>(from),
                               communicators_->of(n), lanes_[n]->handle()),
                    "ncclRecv");
    }

    Collective collective_;
    nccl::Type type_;
    std::size_t window_;
    const nccl::Functions& nccl_;
    std::shared_ptr<nccl::Communicators> communicators_;
    std::vector<gpu::Stream*> lanes_;
};

class Nccl final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "nccl",
            .description =
                "NCCL: between two GPUs a send and a receive, among several GPUs a "
                "collective; its kernels move and sum. The GPUs are those of one process, or "
                "those of ranks on the nodes of a cluster",
            .parameters = {collective(), type(), test()},
            .source = "NVIDIA NCCL; nccl-tests (sizes, ncclAllReduce and others)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {
            .survey_only = true,
            .among_several = true,
            .among_ranks = true,
            .loads = "nccl",
            .family = Family::kernel,
            .shares = {.host_memory = false, .cpus = false, .file_system = false},
            .route = Route::between_ranks,
            .calls = {{.text = "ncclAllReduce", .settings = {{"collective", "allreduce"}}},
                      {.text = "ncclAllGather", .settings = {{"collective", "allgather"}}},
                      {.text = "ncclReduceScatter", .settings = {{"collective", "reduce-scatter"}}},
                      {.text = "ncclBroadcast", .settings = {{"collective", "broadcast"}}},
                      {.text = "ncclAlltoAll", .settings = {{"collective", "alltoall"}}},
                      {.text = "ncclSend and ncclRecv"}}};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const auto& [source, destination, executor] = transfer.path;
        if (between_ranks(transfer)) {
            return nccl::ranks_unsupported_reason(transfer, machine, sums_floats(transfer));
        }
        for (const Memory* memory : {&source, &destination}) {
            if (!memory->on_gpu()) return "NCCL moves bytes between GPUs";
        }
        const bool same = source.place == destination.place;
        if ((source.place.several() || destination.place.several()) && !same) {
            return "a collective has the same GPUs at both ends";
        }
        if (!source.place.several() && same) return "NCCL moves bytes between GPUs";
        if (machine.gpus.size() < 2) return "NCCL needs two GPUs";
        if (std::string reason = nccl::missing_reason(); !reason.empty()) return reason;
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine&) const override {
        if (transfer.path.source.place.several()) return {collective(), type()};
        if (between_ranks(transfer)) return {test()};
        return {};
    }

    // The library enables it by itself.
    [[nodiscard]] std::optional<bool> peer_access(const Transfer& transfer,
                                                  const Machine&) const override {
        if (between_ranks(transfer)) return std::nullopt;
        return true;
    }

    [[nodiscard]] Requirements requirements(const Transfer& transfer,
                                            const Machine& machine) const override {
        Requirements needs;
        if (between_ranks(transfer)) return needs;
        const std::vector<int> gpus = gpus_of(transfer.path);
        std::set<int> through_host;
        for (std::size_t n = 0; n < gpus.size(); ++n) {
            for (std::size_t other = n + 1; other < gpus.size(); ++other) {
                if (direct_access(gpus[n], gpus[other], machine)) {
                    needs.peers.emplace_back(gpus[n], gpus[other]);
                } else {
                    through_host.insert({gpus[n], gpus[other]});
                }
            }
        }
        needs.host_links.assign(through_host.begin(), through_host.end());
        return needs;
    }

    [[nodiscard]] TimingMode timing(const Transfer& transfer, const Machine&) const override {
        return between_ranks(transfer) ? TimingMode::host : TimingMode::device;
    }

    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        if (between_ranks(transfer)) return {};
        return gpus_of(transfer.path);
    }

    [[nodiscard]] Exchange exchange(const Transfer& transfer,
                                    const Machine& machine) const override {
        const Collective chosen = chosen_collective(transfer, machine);
        const Shape shape = nccl::shape_of(chosen, transfer.bytes, gpus_of(transfer.path).size());
        const auto [gpus, whole, part] = shape;
        Exchange made{.source_bytes = chosen == Collective::allgather ? part : whole,
                      .destination_bytes = chosen == Collective::reduce_scatter ? part : whole};
        if (nccl::sums(chosen) && parameter(*this, transfer, machine, "type") == "float") {
            made.element = Exchange::Element::whole_float32;
        }
        for (std::size_t to = 0; to < gpus; ++to) {
            switch (chosen) {
                case Collective::allreduce: made.arrivals.push_back({to, 0, {}, 0, whole}); break;
                case Collective::reduce_scatter:
                    made.arrivals.push_back({to, 0, {}, to * part, part});
                    break;
                case Collective::broadcast: made.arrivals.push_back({to, 0, 0, 0, whole}); break;
                case Collective::allgather:
                case Collective::alltoall:
                    for (std::size_t from = 0; from < gpus; ++from) {
                        const std::size_t at = chosen == Collective::alltoall ? to * part : 0;
                        made.arrivals.push_back({to, from * part, from, at, part});
                    }
                    break;
                case Collective::send: break;
            }
        }
        return made;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        return std::make_unique<NcclExecution>(chosen_collective(transfer, machine),
                                               chosen_type(transfer, machine), transfer.bytes,
                                               gpus_of(transfer.path), lanes);
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare_end(const Transfer& transfer,
                                                         const Machine& machine, Side side,
                                                         const std::vector<gpu::Stream*>& lanes,
                                                         ranks::Messenger& pair) const override {
        const bool one_way = parameter(*this, transfer, machine, "test") == "bw";
        return nccl::prepare_message(
            one_way ? nccl::MessageTest::one_direction : nccl::MessageTest::round_trip,
            transfer.bytes, side, *lanes.at(0), pair);
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare_part(const Transfer& transfer,
                                                          const Machine& machine, const View&,
                                                          const View&,
                                                          const std::vector<gpu::Stream*>& lanes,
                                                          ranks::Messenger& group) const override {
        return nccl::prepare_share(chosen_collective(transfer, machine),
                                   chosen_type(transfer, machine), transfer.bytes, *lanes.at(0),
                                   group);
    }

private:
    static bool between_ranks(const Transfer& transfer) {
        return transfer.path.source.at_rank() || transfer.path.destination.at_rank();
    }
    [[nodiscard]] Collective chosen_collective(const Transfer& transfer,
                                               const Machine& machine) const {
        return nccl::collective_of(parameter(*this, transfer, machine, "collective"));
    }
    [[nodiscard]] nccl::Type chosen_type(const Transfer& transfer, const Machine& machine) const {
        const bool is_float = parameter(*this, transfer, machine, "type") == "float";
        return is_float ? nccl::Type::float32 : nccl::Type::int32;
    }
    [[nodiscard]] bool sums_floats(const Transfer& transfer) const {
        const auto is = [&](const char* name, const char* value) {
            const auto found = transfer.parameters.find(name);
            return found != transfer.parameters.end() && found->second == value;
        };
        return (is("collective", "allreduce") || is("collective", "reduce-scatter")) &&
               !is("type", "int32");
    }
    static Parameter collective() {
        return {.name = "collective",
                .description = "what several GPUs do together; a broadcast is from the first",
                .choices = {"allreduce", "allgather", "reduce-scatter", "broadcast", "alltoall"},
                .written = true};
    }
    static Parameter type() {
        return {.name = "type",
                .description = "of the numbers that allreduce and reduce-scatter sum, of 4 bytes",
                .choices = {"float", "int32"}};
    }
    static Parameter test() {
        return {.name = "test",
                .description =
                    "between two ranks: half a round trip, or messages in one "
                    "direction and an answer",
                .choices = {"latency", "bw"}};
    }
};

const Registered<Executor, Nccl> registered;

}  // namespace
}  // namespace waywiser
