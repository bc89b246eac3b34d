#include "measure/rank_workload.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "host/clock.hpp"
#include "measure/executor_of.hpp"
#include "measure/interval.hpp"
#include "measure/rank_memory.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::measure {
namespace {

constexpr int kSkewSamples = 25;
constexpr double kLeastSkew = 1e-9;  // seconds: what the clock resolves

int position(const std::vector<int>& members, int rank) {
    return static_cast<int>(std::ranges::find(members, rank) - members.begin());
}

}  // namespace

// What this rank does in one transfer.
struct RankWorkload::Share {
    std::size_t transfer = 0;
    std::optional<RankMemory> source, destination;
    std::vector<gpu::Stream*> lanes;
    std::unique_ptr<ranks::Messenger> group;  // of the transfer's ranks
    View from, to;
    std::unique_ptr<Execution> execution;
    // Place of its seconds among those of the transfer's ranks; none if they do not count.
    std::optional<std::size_t> clock;

    [[nodiscard]] std::vector<const RankMemory*> memories() const {
        std::vector<const RankMemory*> held;
        for (const auto* end : {&source, &destination}) {
            if (*end) held.push_back(&**end);
        }
        return held;
    }
};

// The timer of the leader: its samples are those of all ranks.
class RankWorkload::GroupTimer final : public Timer {
public:
    explicit GroupTimer(RankWorkload& workload) : workload_(workload) {}

    Timing take(std::size_t repetitions) override {
        workload_.say(Command::take, repetitions);
        return workload_.take_own(repetitions);
    }
    double once() override { return take(1).span; }
    // By so much the ranks leave a barrier at different times.
    double overhead() override {
        if (measures_skew()) return 0;
        if (overhead_ < 0) {
            std::vector<double> skews(kSkewSamples);
            for (double& skew : skews) skew = take(0).skew;
            overhead_ = median_interval(std::move(skews)).median;
        }
        return overhead_;
    }
    [[nodiscard]] std::size_t least_repetitions() const override {
        std::size_t least = 1;
        for (const auto& share : workload_.shares_) {
            least = std::max(least, share->execution->window());
        }
        return least;
    }
    [[nodiscard]] std::size_t most_repetitions() const override {
        return measures_skew() ? 1 : kMostRepetitions;
    }

private:
    [[nodiscard]] bool measures_skew() const { return workload_.request_.operation.has_value(); }

    RankWorkload& workload_;
    double overhead_ = -1;
};

std::vector<int> RankWorkload::ranks_of(const Request& request, const Machine& machine) {
    std::set<int> found;
    if (request.operation) {
        for (const Place& rank : request.operation->place.each()) found.insert(rank.index);
    }
    for (const Transfer& transfer : request.transfers) {
        const std::vector<int> ranks = executor_of(transfer).participants(transfer, machine);
        found.insert(ranks.begin(), ranks.end());
    }
    return {found.begin(), found.end()};
}

// All allocate before any of them waits for another, which may not be able to.
RankWorkload::RankWorkload(const Request& request, const Machine& machine, BufferPool& pool,
                           Streams& streams, ranks::Messenger& world)
    : request_(request),
      machine_(machine),
      rank_(world.rank()),
      members_(ranks_of(request, machine)),
      group_(world.group(members_)),
      timer_(std::make_unique<GroupTimer>(*this)) {
    together([&] {
        for (std::size_t i = 0; i < request.transfers.size(); ++i) allocate(i, pool, streams);
    });
    // One transfer after the other, since a rank that fails must not keep those waiting that it has
    // a later transfer with.
    for (std::size_t i = 0; i < request.transfers.size(); ++i) {
        together([&] {
            for (const auto& share : shares_) {
                if (share->transfer == i) prepare(*share);
            }
        });
    }
}

RankWorkload::~RankWorkload() = default;

void RankWorkload::allocate(std::size_t index, BufferPool& pool, Streams& streams) {
    const Transfer& transfer = request_.transfers[index];
    const std::vector<int> ranks = executor_of(transfer).participants(transfer, machine_);
    const Path& path = transfer.path;
    const bool several = path.source.place.several();
    first_clocks_.push_back(first_clocks_.back() + (several ? ranks.size() : 1));
    if (std::ranges::find(ranks, rank_) == ranks.end()) return;
    auto share = std::make_unique<Share>();
    share->transfer = index;
    const std::uint64_t seed = request_.seed + index;
    if (several) {
        const Exchange exchange = executor_of(transfer).exchange(transfer, machine_);
        share->source =
            RankMemory::of_exchange(transfer, exchange, Side::source, rank_, seed, machine_, pool);
        share->destination = RankMemory::of_exchange(transfer, exchange, Side::destination, rank_,
                                                     seed, machine_, pool);
        share->clock = static_cast<std::size_t>(position(ranks, rank_));
    } else if (path.source.place.index == rank_) {
        share->source = RankMemory::of_pair(transfer, Side::source, seed, machine_, pool);
        share->clock = 0;
    } else {
        share->destination = RankMemory::of_pair(transfer, Side::destination, seed, machine_, pool);
    }
    if (const int gpu = gpu_of(path.source, path.destination); gpu >= 0) {
        share->lanes.push_back(&streams.get(gpu, shares_.size()));
    }
    shares_.push_back(std::move(share));
}

// Returns the GPU at this rank's end, or ends; -1 for none.
int RankWorkload::gpu_of(const Memory& source, const Memory& destination) const {
    for (const Memory* end : {&source, &destination}) {
        for (const Memory& single : end->each()) {
            if (single.place.index != rank_) continue;
            const Memory local = local_memory(single, machine_);
            if (local.on_gpu()) return local.place.index;
        }
    }
    return -1;
}

void RankWorkload::prepare(Share& share) {
    const Transfer& transfer = request_.transfers[share.transfer];
    const Executor& executor = executor_of(transfer);
    const Path& path = transfer.path;
    const bool several = path.source.place.several();
    const std::vector<int> ranks =
        several ? executor.participants(transfer, machine_)
                : std::vector<int>{path.source.place.index, path.destination.place.index};
    std::vector<int> members;
    for (const int rank : ranks) members.push_back(position(members_, rank));
    share.group = group_->group(members);
    share.from = {.bytes = transfer.bytes, .memory = &path.source};
    share.to = {.bytes = transfer.bytes, .memory = &path.destination};
    if (share.source) share.from = share.source->view();
    if (share.destination) share.to = share.destination->view();
    share.execution = several
                          ? executor.prepare_part(transfer, machine_, share.from, share.to,
                                                  share.lanes, *share.group)
                          : executor.prepare_end(transfer, machine_,
                                                 share.source ? Side::source : Side::destination,
                                                 share.lanes, *share.group);
}

void RankWorkload::together(const std::function<void()>& work) {
    std::exception_ptr own;
    try {
        work();
    } catch (const ranks::MessengerError&) {
        throw;  // no message can be exchanged any more
    } catch (...) {
        own = std::current_exception();
    }
    std::vector<double> failed(members_.size(), 0);
    failed[static_cast<std::size_t>(group_->rank())] = own ? 1 : 0;
    group_->maximum(failed);
    if (own) std::rethrow_exception(own);
    for (std::size_t n = 0; n < members_.size(); ++n) {
        if (failed[n] > 0) throw OtherRankFailed("rank:" + std::to_string(members_[n]));
    }
}

void RankWorkload::say(Command command, std::size_t repetitions) {
    std::array<std::uint64_t, 2> words{static_cast<std::uint64_t>(command), repetitions};
    group_->broadcast(words.data(), sizeof words, 0);
}

void RankWorkload::follow() {
    for (;;) {
        std::array<std::uint64_t, 2> words{};
        group_->broadcast(words.data(), sizeof words, 0);
        switch (static_cast<Command>(words[0])) {
            case Command::fill: fill_own(); break;
            case Command::check: check_own(); break;
            case Command::take: (void)take_own(words[1]); break;
            case Command::end: return;
        }
    }
}

void RankWorkload::fill() {
    say(Command::fill);
    fill_own();
}

void RankWorkload::check() {
    say(Command::check);
    check_own();
}

void RankWorkload::end() { say(Command::end); }

void RankWorkload::fill_own() {
    together([this] {
        for (const auto& share : shares_) {
            for (const RankMemory* memory : share->memories()) memory->fill(machine_);
        }
    });
}

// Both ends: the source must still have its bytes.
void RankWorkload::check_own() {
    together([this] {
        for (const auto& share : shares_) {
            for (const RankMemory* memory : share->memories()) {
                memory->check(request_.transfers[share->transfer], machine_);
            }
        }
    });
}

Timing RankWorkload::take_own(std::size_t repetitions) {
    // Seconds of each rank that counts, transfer after transfer; then the greatest and the negative
    // of the smallest time at which a rank left the barrier.
    const std::size_t clocks = first_clocks_.back();
    std::vector<double> times(clocks + 2, 0);
    group_->barrier();
    const double left_barrier = host::since_boot();
    const double start = host::now();
    for (std::size_t r = 0; r < repetitions; ++r) {
        for (const auto& share : shares_) share->execution->start(share->from, share->to);
    }
    for (const auto& share : shares_) {
        share->execution->finish();
        if (!share->clock || repetitions == 0) continue;
        times[first_clocks_[share->transfer] + *share->clock] =
            (host::now() - start) /
            static_cast<double>(repetitions * share->execution->crossings());
    }
    times[clocks] = left_barrier;
    times[clocks + 1] = -left_barrier;
    group_->maximum(times);
    Timing timing;
    timing.skew = times[clocks] + times[clocks + 1];
    const std::size_t transfers = first_clocks_.size() - 1;
    const bool several = clocks > transfers;
    for (std::size_t i = 0; i < transfers; ++i) {
        const auto own =
            std::span(times).subspan(first_clocks_[i], first_clocks_[i + 1] - first_clocks_[i]);
        timing.transfers.push_back(std::ranges::max(own));
        if (several) timing.lanes.emplace_back(own.begin(), own.end());
    }
    if (timing.transfers.empty()) timing.transfers = {std::max(timing.skew, kLeastSkew)};
    timing.span = std::ranges::max(timing.transfers);
    return timing;
}

std::vector<PlacedBuffer> RankWorkload::placements() const {
    std::vector<PlacedBuffer> placed;
    for (const auto& share : shares_) {
        for (const RankMemory* memory : share->memories()) {
            placed.push_back({memory->named(), memory->buffer().placement(), {}});
        }
    }
    return placed;
}

std::size_t RankWorkload::buffer_bytes() const {
    std::size_t total = 0;
    for (const auto& share : shares_) {
        for (const RankMemory* memory : share->memories()) total += memory->buffer().bytes();
    }
    return total;
}

}  // namespace waywiser::measure
