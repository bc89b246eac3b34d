#include "executor/nccl_collective.hpp"

#include <algorithm>

#include "nccl/library.hpp"

namespace waywiser::nccl {
namespace {

constexpr std::size_t kNumber = 4;  // bytes of a number that is summed
constexpr std::size_t kCallsInARow = 20;
constexpr std::size_t kBytesInARow = 256 << 20;

void exchange_all(const Share& share) {
    const Functions& nccl = functions();
    const auto& [collective, type, from, to, shape, communicator, stream] = share;
    if (nccl.all_to_all != nullptr) {
        check(nccl.all_to_all(from, to, shape.part, Type::int8, communicator, stream),
              "ncclAlltoAll");
        return;
    }
    for (std::size_t other = 0; other < shape.gpus; ++other) {
        const int peer = static_cast<int>(other);
        const std::size_t offset = other * shape.part;
        check(nccl.send(from + offset, shape.part, Type::int8, peer, communicator, stream),
              "ncclSend");
        check(nccl.recv(to + offset, shape.part, Type::int8, peer, communicator, stream),
              "ncclRecv");
    }
}

}  // namespace

std::size_t calls_in_a_row(std::size_t bytes) {
    return std::clamp(kBytesInARow / std::max<std::size_t>(bytes, 1), std::size_t{1}, kCallsInARow);
}

Collective collective_of(const std::string& name) {
    if (name == "allreduce") return Collective::allreduce;
    if (name == "allgather") return Collective::allgather;
    if (name == "reduce-scatter") return Collective::reduce_scatter;
    if (name == "broadcast") return Collective::broadcast;
    if (name == "alltoall") return Collective::alltoall;
    return Collective::send;  // between two memories
}

bool sums(Collective collective) {
    return collective == Collective::allreduce || collective == Collective::reduce_scatter;
}

Shape shape_of(Collective collective, std::size_t bytes, std::size_t gpus) {
    const std::size_t unit = sums(collective) ? kNumber : 1;
    const auto rounded = [&](std::size_t count, std::size_t to) { return (count + to - 1) / to; };
    const std::size_t part = rounded(rounded(bytes, gpus), unit) * unit;
    const bool split = collective != Collective::allreduce && collective != Collective::broadcast;
    return {gpus, split ? gpus * part : rounded(bytes, unit) * unit, part};
}

void enqueue(const Share& share) {
    const Functions& nccl = functions();
    const auto& [collective, type, from, to, shape, communicator, stream] = share;
    constexpr auto kByte = Type::int8;
    constexpr auto kSum = Reduction::sum;
    switch (collective) {
        case Collective::allreduce:
            check(
                nccl.all_reduce(from, to, shape.whole / kNumber, type, kSum, communicator, stream),
                "ncclAllReduce");
            break;
        case Collective::reduce_scatter:
            check(nccl.reduce_scatter(from, to, shape.part / kNumber, type, kSum, communicator,
                                      stream),
                  "ncclReduceScatter");
            break;
        case Collective::allgather:
            check(nccl.all_gather(from, to, shape.part, kByte, communicator, stream),
                  "ncclAllGather");
            break;
        case Collective::broadcast:
            check(nccl.broadcast(from, to, shape.whole, kByte, 0, communicator, stream),
                  "ncclBroadcast");
            break;
        case Collective::alltoall: exchange_all(share); break;
        case Collective::send: break;
    }
}

}  // namespace waywiser::nccl
