#include "executor/alltoall_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "waywiser/memory.hpp"

namespace waywiser::alltoall {
namespace {

std::size_t end_of(const Range& range) { return range.offset + range.bytes; }

// The part of one lane of the message from a memory to another.
Range part(const Plan& plan, Range range, std::size_t from, std::size_t to, std::size_t lane) {
    if (plan.whole) {
        if ((from + to) % plan.lanes() != lane) range.bytes = 0;
        return range;
    }
    const std::size_t start = range.bytes * lane / plan.lanes();
    const std::size_t end = range.bytes * (lane + 1) / plan.lanes();
    return {range.offset + start, end - start};
}

// The bytes of a source: of messages that may have the same ones.
std::size_t source_bytes(const std::vector<Message>& messages) {
    std::size_t bytes = 0;
    for (const Message& message : messages) bytes = std::max(bytes, end_of(message.from));
    return bytes;
}

std::size_t destination_bytes(const Plan& plan, std::size_t memory) {
    return end_of(plan.messages.back()[memory].to);
}

std::size_t sent_bytes(const std::vector<Message>& messages) {
    std::size_t bytes = 0;
    for (const Message& message : messages) bytes += message.from.bytes;
    return bytes;
}

}  // namespace

std::vector<int> Plan::participants() const {
    std::vector<int> all;
    for (const std::vector<int>& each : ranks) all.insert(all.end(), each.begin(), each.end());
    std::ranges::sort(all);
    return all;
}

std::vector<Range> Plan::read(std::size_t memory, std::size_t lane) const {
    std::vector<Range> parts;
    for (std::size_t to = 0; to < memories(); ++to) {
        parts.push_back(part(*this, messages[memory][to].from, memory, to, lane));
    }
    return parts;
}

std::vector<Range> Plan::written(std::size_t memory, std::size_t lane) const {
    std::vector<Range> parts;
    for (std::size_t from = 0; from < memories(); ++from) {
        parts.push_back(part(*this, messages[from][memory].to, from, memory, lane));
    }
    return parts;
}

std::size_t Plan::most_bytes() const {
    std::size_t most = 0;
    for (std::size_t memory = 0; memory < memories(); ++memory) {
        most = std::max({most, sent_bytes(messages[memory]), destination_bytes(*this, memory)});
    }
    return most;
}

std::vector<std::vector<int>> ranks_of_memories(const Memory& memory, const Machine& machine) {
    std::vector<std::vector<int>> found;
    std::map<int, std::size_t> of_gpus;
    for (const Memory& single : memory.each()) {
        const Memory local = local_memory(single, machine);
        const int rank = single.place.index;
        if (!local.on_gpu()) {
            found.push_back({rank});
            continue;
        }
        const auto [known, is_new] = of_gpus.try_emplace(local.place.index, found.size());
        if (is_new) found.emplace_back();
        found[known->second].push_back(rank);
    }
    return found;
}

std::vector<std::vector<Message>> messages_of(const Counts& counts, std::size_t copies) {
    std::vector<std::vector<Message>> messages;
    std::vector<std::size_t> written(counts.size(), 0);
    for (const std::vector<std::size_t>& sizes : counts) {
        std::vector<Message>& own = messages.emplace_back();
        const std::size_t all = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
        const std::size_t distinct = std::max((all + copies - 1) / copies, std::ranges::max(sizes));
        std::size_t at = 0;
        for (std::size_t to = 0; to < sizes.size(); ++to) {
            if (at + sizes[to] > distinct) at = 0;
            own.push_back({{at, sizes[to]}, {written[to], sizes[to]}});
            at += sizes[to];
            written[to] += sizes[to];
        }
    }
    return messages;
}

Exchange exchange_of(const Plan& plan, const Transfer& transfer) {
    const int first = transfer.path.source.place.index;
    const auto number = [&](std::size_t memory) {
        return static_cast<std::size_t>(plan.ranks[memory].front() - first);
    };
    Exchange exchange;
    for (std::size_t from = 0; from < plan.memories(); ++from) {
        exchange.source_bytes = std::max(exchange.source_bytes, source_bytes(plan.messages[from]));
        exchange.destination_bytes =
            std::max(exchange.destination_bytes, destination_bytes(plan, from));
        for (std::size_t to = 0; to < plan.memories(); ++to) {
            const Message& message = plan.messages[from][to];
            if (message.to.bytes == 0) continue;
            exchange.arrivals.push_back({number(to), message.to.offset, number(from),
                                         message.from.offset, message.to.bytes});
        }
    }
    return exchange;
}

}  // namespace waywiser::alltoall
