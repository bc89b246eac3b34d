#include "ranks/nccl_messenger.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "nccl/library.hpp"

namespace waywiser::ranks {
namespace {

std::byte* at(void* data, std::size_t offset) { return static_cast<std::byte*>(data) + offset; }
const std::byte* at(const void* data, std::size_t offset) {
    return static_cast<const std::byte*>(data) + offset;
}

// Whether NCCL takes the address.
bool is_on_gpu(const void* data) {
    const gpu::PointerKind kind = gpu::pointer_info(data).kind;
    return kind == gpu::PointerKind::device || kind == gpu::PointerKind::managed;
}

// Nothing is sent as one byte: NCCL would not wait for it.
std::size_t sent_bytes(std::size_t bytes) { return std::max<std::size_t>(bytes, 1); }

}  // namespace

// A message of a batch, to or from a rank of the group.
struct NcclMessenger::Mail {
    std::byte* data;
    std::size_t bytes;
    int peer;
    int tag = 0;
    bool staged = false;
};

// The stream of messages, and memory for those from and to the host: on the host, and on the GPU.
class NcclMessenger::Staging {
public:
    explicit Staging(int gpu) : stream(gpu), gpu_(gpu) {}

    void reserve(std::size_t bytes) {
        if (device_ && device_->bytes() >= bytes) return;  // made last
        const std::size_t room = std::bit_ceil(std::max(bytes, kLeast));
        host_.reset();
        device_.reset();
        host_.emplace(room, gpu::HostUse::portable, gpu_);
        device_.emplace(gpu_, room);
    }
    [[nodiscard]] std::byte* host() const { return host_->data(); }
    [[nodiscard]] std::byte* device() const { return device_->data(); }

    gpu::Stream stream;

private:
    static constexpr std::size_t kLeast = std::size_t{1} << 20;

    int gpu_;
    std::optional<gpu::HostBuffer> host_;
    std::optional<gpu::DeviceBuffer> device_;
};

class NcclMessenger::Batch final : public Completion {
public:
    Batch(NcclMessenger& messenger, std::size_t most)
        : Completion(messenger.own_stage()), messenger_(messenger), most_(most) {}

private:
    void do_send(const void* data, std::size_t bytes, int to, int tag) override {
        count();
        sends_.push_back({const_cast<std::byte*>(at(data, 0)), bytes, to, tag});
    }
    void do_receive(void* data, std::size_t bytes, int from, int tag) override {
        count();
        receives_.push_back({at(data, 0), bytes, from, tag});
    }
    void do_wait() override {
        messenger_.exchange(std::exchange(sends_, {}), std::exchange(receives_, {}));
    }
    bool do_done() override {
        do_wait();
        return true;
    }
    void count() const {
        if (sends_.size() + receives_.size() < most_) return;
        throw MessengerError("more messages than were prepared for");
    }

    NcclMessenger& messenger_;
    std::size_t most_;
    std::vector<Mail> sends_, receives_;
};

NcclMessenger::NcclMessenger(std::shared_ptr<NcclConnection> connection)
    : NcclMessenger(connection, std::make_shared<Staging>(connection->gpu()), [&] {
          std::vector<int> all(static_cast<std::size_t>(connection->size()));
          std::iota(all.begin(), all.end(), 0);
          return all;
      }()) {}

NcclMessenger::NcclMessenger(std::shared_ptr<NcclConnection> connection,
                             std::shared_ptr<Staging> staging, std::vector<int> members)
    : Messenger(connection->stage()),
      connection_(std::move(connection)),
      staging_(std::move(staging)),
      members_(std::move(members)),
      own_(static_cast<int>(std::ranges::find(members_, connection_->rank()) - members_.begin())) {}

NcclMessenger::~NcclMessenger() = default;

bool NcclMessenger::is_whole() const {
    for (int rank = 0; rank < size(); ++rank) {
        if (number(rank) != rank) return false;
    }
    return size() == connection_->size();
}

std::unique_ptr<Completion> NcclMessenger::prepare(std::size_t most) {
    return std::make_unique<Batch>(*this, most);
}

// All as one operation, so that no order of two ranks' calls can block them.
void NcclMessenger::exchange(std::vector<Mail> sends, std::vector<Mail> receives) {
    std::ranges::stable_sort(sends, {}, &Mail::tag);
    std::ranges::stable_sort(receives, {}, &Mail::tag);
    std::size_t room = 0;
    for (std::vector<Mail>* mails : {&sends, &receives}) {
        for (Mail& mail : *mails) {
            require_message_bytes(mail.bytes);
            mail.staged = mail.bytes == 0 || !is_on_gpu(mail.data);
            if (mail.staged) room += sent_bytes(mail.bytes);
        }
    }
    staging_->reserve(room);
    const gpu::Stream& stream = staging_->stream;
    std::size_t sent = 0;
    for (const Mail& mail : sends) {
        if (!mail.staged) continue;
        if (mail.bytes > 0) std::memcpy(staging_->host() + sent, mail.data, mail.bytes);
        sent += sent_bytes(mail.bytes);
    }
    if (sent > 0) gpu::copy_async(staging_->device(), staging_->host(), sent, stream);
    connection_->submit([&] {
        const nccl::Functions& nccl = nccl::functions();
        std::size_t offset = 0;
        const auto place = [&](const Mail& mail) {
            if (!mail.staged) return mail.data;
            return staging_->device() + std::exchange(offset, offset + sent_bytes(mail.bytes));
        };
        for (const Mail& mail : sends) {
            nccl::check(nccl.send(place(mail), sent_bytes(mail.bytes), nccl::Type::int8,
                                  number(mail.peer), connection_->communicator(), stream.handle()),
                        "ncclSend");
        }
        for (const Mail& mail : receives) {
            nccl::check(nccl.recv(place(mail), sent_bytes(mail.bytes), nccl::Type::int8,
                                  number(mail.peer), connection_->communicator(), stream.handle()),
                        "ncclRecv");
        }
    });
    if (room > sent) {
        gpu::copy_async(staging_->host() + sent, staging_->device() + sent, room - sent, stream);
    }
    connection_->await(stream);
    for (const Mail& mail : receives) {
        if (!mail.staged) continue;
        if (mail.bytes > 0) std::memcpy(mail.data, staging_->host() + sent, mail.bytes);
        sent += sent_bytes(mail.bytes);
    }
}

// One message for each rank, of its part of a buffer.
std::vector<NcclMessenger::Mail> NcclMessenger::mails(const void* data, const Parts& parts) {
    std::vector<Mail> made;
    for (std::size_t n = 0; n < parts.bytes.size(); ++n) {
        made.push_back(
            {const_cast<std::byte*>(at(data, static_cast<std::size_t>(parts.offsets[n]))),
             static_cast<std::size_t>(parts.bytes[n]), static_cast<int>(n)});
    }
    return made;
}

template <class Step>
void NcclMessenger::for_each_step(const Step& step) {
    for (int distance = 1; distance < size(); distance *= 2) {
        step((own_ + distance) % size(), (own_ - distance + size()) % size());
    }
}

void NcclMessenger::do_send(const void* data, std::size_t bytes, int to, int) {
    exchange({{const_cast<std::byte*>(at(data, 0)), bytes, to}}, {});
}

void NcclMessenger::do_receive(void* data, std::size_t bytes, int from, int) {
    exchange({}, {{at(data, 0), bytes, from}});
}

void NcclMessenger::do_barrier() {
    for_each_step([&](int to, int from) { exchange({{nullptr, 0, to}}, {{nullptr, 0, from}}); });
}

// Ranks that have the bytes pass them on, twice as many in each step.
void NcclMessenger::do_broadcast(void* data, std::size_t bytes, int root) {
    const int place = (own_ - root + size()) % size();
    for (int reached = 1; reached < size(); reached *= 2) {
        const int to = place + reached;
        if (place < reached && to < size()) {
            do_send(data, bytes, (to + root) % size(), 0);
        } else if (place >= reached && place < 2 * reached) {
            do_receive(data, bytes, (place - reached + root) % size(), 0);
        }
    }
}

void NcclMessenger::do_maximum(std::span<double> values) {
    std::vector<double> others(values.size());
    for_each_step([&](int to, int from) {
        exchange({{at(static_cast<void*>(values.data()), 0), values.size_bytes(), to}},
                 {{at(static_cast<void*>(others.data()), 0), values.size_bytes(), from}});
        for (std::size_t n = 0; n < values.size(); ++n) values[n] = std::max(values[n], others[n]);
    });
}

void NcclMessenger::do_alltoall(const void* source, void* destination, std::size_t bytes_each) {
    const std::vector<std::size_t> bytes(members_.size(), bytes_each);
    const Parts parts = Parts::in_order(bytes);
    do_alltoallv(source, parts, destination, parts);
}

void NcclMessenger::do_alltoallv(const void* source, const Parts& parts, void* destination,
                                 const Parts& destination_parts) {
    exchange(mails(source, parts), mails(destination, destination_parts));
}

void NcclMessenger::do_scatterv(const void* source, const Parts& parts, void* destination,
                                std::size_t bytes, int root) {
    exchange(own_ == root ? mails(source, parts) : std::vector<Mail>{},
             {{at(destination, 0), bytes, root}});
}

void NcclMessenger::do_gatherv(const void* source, std::size_t bytes, void* destination,
                               const Parts& parts, int root) {
    exchange({{const_cast<std::byte*>(at(source, 0)), bytes, root}},
             own_ == root ? mails(destination, parts) : std::vector<Mail>{});
}

std::unique_ptr<Messenger> NcclMessenger::do_group(std::span<const int> chosen) {
    std::vector<int> members;
    for (const int rank : chosen) members.push_back(number(rank));
    return std::unique_ptr<Messenger>(new NcclMessenger(connection_, staging_, std::move(members)));
}

}  // namespace waywiser::ranks
