#include "ranks/messenger.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace waywiser::ranks {
namespace {

using Entered = Stage::Entered;

}  // namespace

void require_message_bytes(std::size_t bytes) {
    if (bytes <= kMostMessageBytes) return;
    throw MessengerError("a message of " + std::to_string(bytes) +
                         " bytes: MPI counts in int, so one message has less than 2 GiB");
}

Parts Parts::in_order(std::span<const std::size_t> bytes) {
    require_message_bytes(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}));
    Parts parts;
    int offset = 0;
    for (const std::size_t each : bytes) {
        parts.bytes.push_back(static_cast<int>(each));
        parts.offsets.push_back(offset);
        offset += static_cast<int>(each);
    }
    return parts;
}

void Completion::send(const void* data, std::size_t bytes, int to, int tag) {
    const Entered in(stage_, "start of a send to", to);
    do_send(data, bytes, to, tag);
}

void Completion::receive(void* data, std::size_t bytes, int from, int tag) {
    const Entered in(stage_, "start of a receive from", from);
    do_receive(data, bytes, from, tag);
}

void Completion::wait() {
    const Entered in(stage_, "wait for messages");
    do_wait();
}

bool Completion::done() {
    const Entered in(stage_, "test of messages");
    return do_done();
}

void Messenger::send(const void* data, std::size_t bytes, int to, int tag) {
    const Entered in(stage_, "send to", to);
    do_send(data, bytes, to, tag);
}

void Messenger::receive(void* data, std::size_t bytes, int from, int tag) {
    const Entered in(stage_, "receive from", from);
    do_receive(data, bytes, from, tag);
}

void Messenger::barrier() {
    const Entered in(stage_, "barrier");
    do_barrier();
}

void Messenger::broadcast(void* data, std::size_t bytes, int root) {
    const Entered in(stage_, "broadcast of", root);
    do_broadcast(data, bytes, root);
}

void Messenger::maximum(std::span<double> values) {
    const Entered in(stage_, "maximum");
    do_maximum(values);
}

void Messenger::alltoall(const void* source, void* destination, std::size_t bytes_each) {
    const Entered in(stage_, "alltoall");
    do_alltoall(source, destination, bytes_each);
}

void Messenger::alltoallv(const void* source, const Parts& parts, void* destination,
                          const Parts& destination_parts) {
    const Entered in(stage_, "alltoallv");
    do_alltoallv(source, parts, destination, destination_parts);
}

void Messenger::scatterv(const void* source, const Parts& parts, void* destination,
                         std::size_t bytes, int root) {
    const Entered in(stage_, "scatterv of", root);
    do_scatterv(source, parts, destination, bytes, root);
}

void Messenger::gatherv(const void* source, std::size_t bytes, void* destination,
                        const Parts& parts, int root) {
    const Entered in(stage_, "gatherv of", root);
    do_gatherv(source, bytes, destination, parts, root);
}

std::unique_ptr<Messenger> Messenger::group(std::span<const int> chosen) {
    if (std::ranges::find(chosen, rank()) == chosen.end()) {
        throw MessengerError("rank " + std::to_string(rank()) + " is not in the group");
    }
    const Entered in(stage_, "making of a group");
    return do_group(chosen);
}

}  // namespace waywiser::ranks
