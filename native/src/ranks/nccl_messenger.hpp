// Messages between ranks by NCCL. Its groups are of the same connection, and need no other.
//
// NCCL knows no tags and no sizes: the messages of two ranks meet in the order in which they are
// sent together (those that are started together by tag, too), and one of another size is never
// received. Messages that are started are sent when they are waited for or tested, which then
// returns when all have ended.
#pragma once

#include <memory>
#include <vector>

#include "gpu/gpu.hpp"
#include "ranks/messenger.hpp"
#include "ranks/nccl_connection.hpp"

namespace waywiser::ranks {

class NcclMessenger final : public Messenger {
public:
    // The messenger of all ranks of a connection that has joined.
    explicit NcclMessenger(std::shared_ptr<NcclConnection> connection);
    ~NcclMessenger() override;

    [[nodiscard]] int rank() const override { return own_; }
    [[nodiscard]] int size() const override { return static_cast<int>(members_.size()); }
    [[nodiscard]] std::unique_ptr<Completion> prepare(std::size_t most) override;

    // For executors, which put work on streams of their own.
    [[nodiscard]] NcclConnection& connection() const { return *connection_; }
    // What NCCL calls a rank of the group.
    [[nodiscard]] int number(int rank) const { return members_.at(static_cast<std::size_t>(rank)); }
    // Whether the group has all ranks of the connection, in their order.
    [[nodiscard]] bool is_whole() const;

private:
    struct Mail;
    class Batch;
    class Staging;

    NcclMessenger(std::shared_ptr<NcclConnection> connection, std::shared_ptr<Staging> staging,
                  std::vector<int> members);

    static std::vector<Mail> mails(const void* data, const Parts& parts);
    void exchange(std::vector<Mail> sends, std::vector<Mail> receives);
    // Each rank passes to another what it has, in as many steps as it takes until all know of all.
    template <class Step>
    void for_each_step(const Step& step);

    void do_send(const void* data, std::size_t bytes, int to, int tag) override;
    void do_receive(void* data, std::size_t bytes, int from, int tag) override;
    void do_barrier() override;
    void do_broadcast(void* data, std::size_t bytes, int root) override;
    void do_maximum(std::span<double> values) override;
    void do_alltoall(const void* source, void* destination, std::size_t bytes_each) override;
    void do_alltoallv(const void* source, const Parts& parts, void* destination,
                      const Parts& destination_parts) override;
    void do_scatterv(const void* source, const Parts& parts, void* destination, std::size_t bytes,
                     int root) override;
    void do_gatherv(const void* source, std::size_t bytes, void* destination, const Parts& parts,
                    int root) override;
    std::unique_ptr<Messenger> do_group(std::span<const int> chosen) override;

    std::shared_ptr<NcclConnection> connection_;
    std::shared_ptr<Staging> staging_;
    std::vector<int> members_;  // what NCCL calls the ranks
    int own_ = 0;
};

}  // namespace waywiser::ranks
