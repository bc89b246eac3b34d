// Who sends what in an exchange of the memories of several ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/alltoall_counts.hpp"
#include "waywiser/executor.hpp"

namespace waywiser::alltoall {

// How bytes get from the memory of a GPU to that of another:
enum class Strategy {
    direct,             // messages from and to memory as it is
    three_step,         // one process copies all to the host, sends all, copies all to its GPU
    extra_message,      // it hands what it copied out to the others, who send and receive
    duplicate_pointer,  // each process copies, sends and receives its own part
};

// Bytes in a memory.
struct Range {
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

// Bytes in the memory that they are read from and in the one that they are written to.
struct Message {
    Range from;
    Range to;
};

struct Plan {
    Strategy strategy = Strategy::direct;
    bool whole = false;  // each lane has whole messages, not a part of each
    bool pairs = false;  // messages between pairs, not a call for all
    bool even = false;   // all messages of a lane have one size and lie in order
    // The ranks that take part, by their numbers in the launch: [memory][lane]. The first of a
    // memory holds it.
    std::vector<std::vector<int>> ranks;
    std::vector<std::vector<Message>> messages;  // [from][to]

    [[nodiscard]] std::size_t memories() const { return ranks.size(); }
    [[nodiscard]] std::size_t lanes() const { return ranks.front().size(); }
    [[nodiscard]] bool staged() const { return strategy != Strategy::direct; }
    // Whether the first rank of a memory hands parts to others.
    [[nodiscard]] bool hands_on() const {
        return strategy == Strategy::extra_message && lanes() > 1;
    }
    // All ranks that take part, in the order of their numbers.
    [[nodiscard]] std::vector<int> participants() const;
    // The lane's part of each message of a memory, in the order of its peers.
    [[nodiscard]] std::vector<Range> read(std::size_t memory, std::size_t lane) const;
    [[nodiscard]] std::vector<Range> written(std::size_t memory, std::size_t lane) const;
    // The most bytes that one memory sends or receives.
    [[nodiscard]] std::size_t most_bytes() const;
};

// The ranks at each memory of the transfer, in order: those of each GPU, or each alone with host
// memory.
std::vector<std::vector<int>> ranks_of_memories(const Memory& memory, const Machine& machine);

// Messages one after another in both memories. `copies` is how often the same bytes are sent, to
// several memories: then they are in the source once.
std::vector<std::vector<Message>> messages_of(const Counts& counts, std::size_t copies);

Exchange exchange_of(const Plan& plan, const Transfer& transfer);

}  // namespace waywiser::alltoall
