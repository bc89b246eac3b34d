// What executors between ranks have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranks/messenger.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {

// The ranks of a pair are those of its transfer: 0 has the source, 1 the destination.
constexpr int peer_of(Side side) { return side == Side::source ? 1 : 0; }

class BetweenRanks : public Executor {
public:
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        for (const Memory* memory : {&transfer.path.source, &transfer.path.destination}) {
            for (const Memory& single : memory->each()) {
                if (is_of_nccl(single, machine)) return "these ranks have no MPI: write nccl";
                const Memory local = local_memory(single, machine);
                if (local.on_host() || local.on_gpu()) continue;
                return memory->kind + " memory is not sent in messages";
            }
        }
        if (message_bytes(transfer, machine) > ranks::kMostMessageBytes) {
            return "MPI counts in int, so one message has less than 2 GiB";
        }
        return std::nullopt;
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return info().parameters;
    }
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }
    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer&, const Machine&,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine&) const override {
        throw NotSupported(info().name + " needs the process of each rank");
    }

protected:
    // The bytes of the largest message.
    [[nodiscard]] virtual std::size_t message_bytes(const Transfer& transfer,
                                                    const Machine&) const {
        return transfer.bytes;
    }
    // Whether a rank's library of messages does not take addresses of the memory.
    [[nodiscard]] static bool is_unsent(const Memory& memory, const Machine& machine) {
        return any_rank_lists(&RankPlace::unsent, memory, machine);
    }
    // Whether only its collective calls do not take them.
    [[nodiscard]] static bool is_unexchanged(const Memory& memory, const Machine& machine) {
        return any_rank_lists(&RankPlace::unexchanged, memory, machine);
    }
    [[nodiscard]] static bool is_of_nccl(const Memory& memory, const Machine& machine) {
        const RankPlace* rank = machine.rank(memory.place.index);
        return rank != nullptr && rank->messages == "nccl";
    }
    [[nodiscard]] std::size_t number(const Transfer& transfer, const Machine& machine,
                                     const std::string& name) const {
        return std::stoul(parameter(*this, transfer, machine, name));
    }

private:
    [[nodiscard]] static bool any_rank_lists(std::vector<std::string> RankPlace::* kinds,
                                             const Memory& memory, const Machine& machine) {
        return std::ranges::any_of(memory.place.each(), [&](const Place& place) {
            const RankPlace* rank = machine.rank(place.index);
            return rank != nullptr &&
                   std::ranges::find(rank->*kinds, memory.kind) != (rank->*kinds).end();
        });
    }
};

// A round trip: the clock of one end suffices. `messages` cross together in each direction. The
// bytes go back to where they came from, so that the source keeps them.
class RoundTrip : public Execution {
public:
    explicit RoundTrip(Side side, std::size_t messages = 1) : side_(side), messages_(messages) {}
    void start(const View& source, const View& destination) final {
        if (side_ == Side::source) {
            send(source);
            receive(source);
        } else {
            receive(destination);
            send(destination);
        }
    }
    [[nodiscard]] std::size_t crossings() const final { return 2 * messages_; }

private:
    virtual void send(const View& view) = 0;
    virtual void receive(const View& view) = 0;

    Side side_;
    std::size_t messages_;
};

}  // namespace waywiser
