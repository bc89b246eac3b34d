// The collectives of NCCL, of the GPUs of one process or of several. Sizes are those of nccl-tests:
// the bytes of a collective are those of the larger side of each GPU.
#pragma once

#include <cstddef>
#include <string>

#include "nccl/functions.hpp"

namespace waywiser::nccl {

enum class Collective { send, allreduce, allgather, reduce_scatter, broadcast, alltoall };

// Calls follow each other, as in nccl-tests: the next one begins while the last GPU of a call still
// takes bytes from its buffers (15 us of a message between two H100). Of more bytes than these
// fewer calls do: the end of one is then little of its time.
std::size_t calls_in_a_row(std::size_t bytes);

Collective collective_of(const std::string& name);
bool sums(Collective collective);

struct Shape {
    std::size_t gpus = 0;
    std::size_t whole = 0;  // bytes of the larger side
    std::size_t part = 0;   // that belong to one GPU
};

// A size that does not divide into equal parts of whole numbers is rounded up.
Shape shape_of(Collective collective, std::size_t bytes, std::size_t gpus);

// The share of one GPU in a collective.
struct Share {
    Collective collective = Collective::send;
    Type type = Type::float32;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    Shape shape;
    Communicator communicator = nullptr;
    void* stream = nullptr;
};
// Puts it on the stream, within a group of calls. Throws Error.
void enqueue(const Share& share);

}  // namespace waywiser::nccl
