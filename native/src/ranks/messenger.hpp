// Messages between ranks: the processes of one launch, or in tests threads. Executors use this
// interface and no library of messages.
//
// Ownership: a group, and messages that were started, are used up before the messenger that made
// them ends; what is sent or received stays the caller's, and valid until the call, or the wait for
// it, returns.
// Thread safety: one thread at a time uses a messenger, its groups and what they started. Any
// thread reads the stage.
// Ordering: two messages from one rank to another with equal tags arrive in the order of their
// start. A send may wait until its receive is started. All ranks of a group call what is for all
// ranks, in the same order.
// Units: bytes; ranks are numbers in the messenger's group, from 0. Tags are from 0 to 32767.
// Errors: all throw MessengerError with one line. The messages of a group are undefined after one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "ranks/stage.hpp"

namespace waywiser::ranks {

class MessengerError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Messages count in int: one has less than 2 GiB.
inline constexpr std::size_t kMostMessageBytes = 0x7FFFFFFF;
// Throws MessengerError for a larger one, with the reason.
void require_message_bytes(std::size_t bytes);

// The parts of a buffer that belong to the ranks of a group.
struct Parts {
    std::vector<int> bytes;
    std::vector<int> offsets;

    // One part after the other. Throws MessengerError if they have 2 GiB or more together.
    static Parts in_order(std::span<const std::size_t> bytes);
};

// Messages that are started, and ended together.
class Completion {
public:
    virtual ~Completion() = default;
    void send(const void* data, std::size_t bytes, int to, int tag = 0);
    void receive(void* data, std::size_t bytes, int from, int tag = 0);
    // Returns when all have ended. Then others can be started.
    void wait();
    // Whether all have ended, as wait() ends them. Lets the library make progress.
    bool done();

protected:
    explicit Completion(Stage& stage) : stage_(stage) {}

private:
    virtual void do_send(const void* data, std::size_t bytes, int to, int tag) = 0;
    virtual void do_receive(void* data, std::size_t bytes, int from, int tag) = 0;
    virtual void do_wait() = 0;
    virtual bool do_done() = 0;

    Stage& stage_;
};

class Messenger {
public:
    virtual ~Messenger() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;
    // That of the process, or of the thread that is a rank: groups have the same.
    [[nodiscard]] const Stage& stage() const { return stage_; }

    void send(const void* data, std::size_t bytes, int to, int tag = 0);
    // Throws for a message of another size.
    void receive(void* data, std::size_t bytes, int from, int tag = 0);
    // For at most so many messages at a time.
    [[nodiscard]] virtual std::unique_ptr<Completion> prepare(std::size_t most) = 0;

    void barrier();
    void broadcast(void* data, std::size_t bytes, int root);
    // Replaces each value by the greatest of all ranks.
    void maximum(std::span<double> values);
    // Each rank gets the same number of bytes from each.
    void alltoall(const void* source, void* destination, std::size_t bytes_each);
    void alltoallv(const void* source, const Parts& parts, void* destination,
                   const Parts& destination_parts);
    // `source` and `parts`, or `destination` and `parts`, are used in the root only.
    void scatterv(const void* source, const Parts& parts, void* destination, std::size_t bytes,
                  int root);
    void gatherv(const void* source, std::size_t bytes, void* destination, const Parts& parts,
                 int root);

    // Called by the chosen ranks alone, which are numbered in their order. The others need not
    // know.
    [[nodiscard]] std::unique_ptr<Messenger> group(std::span<const int> chosen);

protected:
    explicit Messenger(Stage& stage) : stage_(stage) {}
    [[nodiscard]] Stage& own_stage() { return stage_; }

private:
    virtual void do_send(const void* data, std::size_t bytes, int to, int tag) = 0;
    virtual void do_receive(void* data, std::size_t bytes, int from, int tag) = 0;
    virtual void do_barrier() = 0;
    virtual void do_broadcast(void* data, std::size_t bytes, int root) = 0;
    virtual void do_maximum(std::span<double> values) = 0;
    virtual void do_alltoall(const void* source, void* destination, std::size_t bytes_each) = 0;
    virtual void do_alltoallv(const void* source, const Parts& parts, void* destination,
                              const Parts& destination_parts) = 0;
    virtual void do_scatterv(const void* source, const Parts& parts, void* destination,
                             std::size_t bytes, int root) = 0;
    virtual void do_gatherv(const void* source, std::size_t bytes, void* destination,
                            const Parts& parts, int root) = 0;
    virtual std::unique_ptr<Messenger> do_group(std::span<const int> chosen) = 0;

    Stage& stage_;
};

}  // namespace waywiser::ranks
