#include "measure/rank_memory.hpp"

#include <algorithm>
#include <string>

#include "measure/exchange_bytes.hpp"
#include "measure/executor_of.hpp"
#include "measure/pattern.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {
namespace {

// Bytes behind the end of a memory in which nothing may arrive.
constexpr std::size_t kGuard = 64;
// The distance between the seeds of two memories; the seeds of two transfers differ by less.
constexpr std::uint64_t kMemoriesApart = std::uint64_t{1} << 32;

const Memory& memory_at(Side side, const Transfer& transfer) {
    return side == Side::source ? transfer.path.source : transfer.path.destination;
}

}  // namespace

RankMemory::RankMemory(const Memory& named, Memory local, Side side, std::size_t bytes,
                       std::vector<Stretch> stretches, BufferPool& pool)
    : named_(named.text()),
      local_(std::make_unique<Memory>(std::move(local))),
      side_(side),
      bytes_(bytes),
      stretches_(std::move(stretches)) {
    std::size_t end = bytes;
    for (const Stretch& stretch : stretches_) end = std::max(end, stretch.offset + stretch.bytes);
    buffer_ = pool.take(*local_, end);
}

RankMemory RankMemory::of_pair(const Transfer& transfer, Side side, std::uint64_t seed,
                               const Machine& machine, BufferPool& pool) {
    const Memory& named = memory_at(side, transfer);
    return {named,
            local_memory(named, machine),
            side,
            transfer.bytes,
            {{.bytes = transfer.bytes, .seed = seed, .arrives = side == Side::destination}},
            pool};
}

std::optional<RankMemory> RankMemory::of_exchange(const Transfer& transfer,
                                                  const Exchange& exchange, Side side, int rank,
                                                  std::uint64_t seed, const Machine& machine,
                                                  BufferPool& pool) {
    const std::vector<Memory> all = memory_at(side, transfer).each();
    const auto own = static_cast<std::size_t>(rank - all.front().place.index);
    const auto seed_of = [&](std::size_t memory) { return seed + (memory + 1) * kMemoriesApart; };
    const bool sums =
        std::ranges::any_of(exchange.arrivals, [](const auto& arrival) { return !arrival.source; });
    std::vector<Stretch> stretches;
    std::size_t bytes = 0;
    for (const Exchange::Arrival& arrival : exchange.arrivals) {
        if (side == Side::source && arrival.source.value_or(own) == own) {
            bytes = std::max(bytes, arrival.from + arrival.bytes);
        }
        if (side == Side::destination && arrival.destination == own) {
            if (arrival.source) {
                stretches.push_back(
                    {arrival.to, arrival.bytes, seed_of(*arrival.source), arrival.from, true});
            }
            bytes = std::max(bytes, arrival.to + arrival.bytes);
        }
    }
    if (bytes == 0) return std::nullopt;
    if (side == Side::source && !sums) stretches.push_back({.bytes = bytes, .seed = seed_of(own)});
    stretches.push_back({.offset = bytes, .bytes = kGuard, .seed = ~seed});
    const Executor& executor = executor_of(transfer);
    RankMemory made(all[own],
                    executor.allocated(transfer, local_memory(all[own], machine), machine), side,
                    bytes, std::move(stretches), pool);
    if (sums) made.summed_ = Summed{exchange, seed, own, all.size()};
    return made;
}

View RankMemory::view() const {
    return {.data = buffer_->data(), .bytes = bytes_, .memory = local_.get()};
}

View RankMemory::view(const Stretch& stretch) const {
    return {
        .data = buffer_->data() + stretch.offset, .bytes = stretch.bytes, .memory = local_.get()};
}

void RankMemory::fill(const Machine& machine) const {
    if (summed_) fill_summed();
    for (const Stretch& stretch : stretches_) {
        if (stretch.arrives) {
            measure::poison(view(stretch), stretch.seed, machine, stretch.at);
        } else {
            measure::fill(view(stretch), stretch.seed, machine, stretch.at);
        }
    }
}

void RankMemory::fill_summed() const {
    const auto& [exchange, seed, number, sources] = *summed_;
    if (side_ == Side::source) {
        fill_source(view(), exchange, seed, number);
    } else {
        poison_destination(view(), exchange, seed, number, sources);
    }
}

Mismatch RankMemory::check_summed() const {
    const auto& [exchange, seed, number, sources] = *summed_;
    if (side_ == Side::source) return check_source(view(), exchange, seed, number);
    return check_destination(view(), exchange, seed, number, sources);
}

void RankMemory::check(const Transfer& transfer, const Machine& machine) const {
    if (summed_) {
        const Mismatch wrong = check_summed();
        if (wrong.count > 0) fail(wrong, bytes_, "at", transfer);
    }
    for (const Stretch& stretch : stretches_) {
        Mismatch wrong = measure::check(view(stretch), stretch.seed, machine, stretch.at);
        if (wrong.count == 0) continue;
        wrong.first += stretch.offset - stretch.at;
        fail(wrong, stretch.bytes, stretch.offset >= bytes_ ? "behind" : "at", transfer);
    }
}

void RankMemory::fail(Mismatch wrong, std::size_t of, const char* where,
                      const Transfer& transfer) const {
    throw WrongBytes(
        std::to_string(wrong.count) + " of " + std::to_string(of) + " bytes are wrong " + where +
        " the " + (side_ == Side::source ? "source" : "destination") + " " + named_ +
        ", the first at offset " + std::to_string(wrong.first) + ", after " + transfer.text());
}

}  // namespace waywiser::measure
