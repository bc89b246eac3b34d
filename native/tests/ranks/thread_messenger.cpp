#include "ranks/thread_messenger.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

namespace waywiser::test {

using ranks::Completion;
using ranks::Messenger;
using ranks::MessengerError;
using ranks::Parts;
using ranks::Stage;

namespace {

constexpr int kCollective = -1;  // a tag that callers cannot have

bool strikes(const std::optional<MessageOfRank>& fault, int rank, std::uint64_t message) {
    return fault && fault->rank == rank && fault->message == message;
}

}  // namespace

void ThreadWorld::require_running() const {
    if (over_) throw MessengerError(why_over_);
}

void ThreadWorld::end() {
    const std::scoped_lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
}

void ThreadWorld::wait(const std::function<bool()>& ended) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_ || ended(); });
    if (!ended()) require_running();
}

bool ThreadWorld::look(const std::function<bool()>& ended) {
    const std::scoped_lock lock(mutex_);
    const bool now = ended();
    if (!now) require_running();
    return now;
}

void ThreadWorld::match(Queue& queue) {
    while (!queue.messages.empty() && !queue.receives.empty()) {
        Message& message = *queue.messages.front();
        Receive& receive = *queue.receives.front();
        const std::size_t bytes = std::min(message.bytes, receive.bytes);
        if (bytes > 0) std::memcpy(receive.data, message.data, bytes);
        if (message.flipped && bytes > 0) receive.data[bytes / 2] ^= std::byte{0xFF};
        if (message.bytes != receive.bytes) {
            receive.error = std::to_string(message.bytes) + " bytes came where " +
                            std::to_string(receive.bytes) + " were expected";
        }
        message.ended = receive.ended = true;
        queue.messages.pop_front();
        queue.receives.pop_front();
        changed_.notify_all();
    }
}

std::shared_ptr<ThreadWorld::Message> ThreadWorld::start_send(const Key& key, const void* data,
                                                              std::size_t bytes) {
    ranks::require_message_bytes(bytes);
    std::this_thread::sleep_for(options_.delay);
    std::unique_lock lock(mutex_);
    require_running();
    const int rank = std::get<1>(key);
    const std::uint64_t number = bytes >= options_.counted_bytes ? ++sent_[rank] : 0;
    if (strikes(options_.hangs, rank, number)) {
        changed_.wait(lock, [this] { return over_; });
        require_running();
    }
    if (strikes(options_.fails, rank, number)) {
        // At once: the buffers of this rank are freed on the way out.
        over_ = true;
        why_over_ = "message " + std::to_string(number) + " failed by design";
        changed_.notify_all();
        require_running();
    }
    const auto message = std::make_shared<Message>();
    message->data = static_cast<const std::byte*>(data);
    message->bytes = bytes;
    message->flipped = strikes(options_.flips, rank, number);
    if (bytes <= options_.most_buffered_bytes) {
        message->copy.assign(message->data, message->data + bytes);
        message->data = message->copy.data();
        message->ended = true;
    }
    Queue& queue = queues_[key];
    queue.messages.push_back(message);
    match(queue);
    return message;
}

std::shared_ptr<ThreadWorld::Receive> ThreadWorld::start_receive(const Key& key, void* data,
                                                                 std::size_t bytes) {
    ranks::require_message_bytes(bytes);
    const std::scoped_lock lock(mutex_);
    require_running();
    const auto receive = std::make_shared<Receive>();
    receive->data = static_cast<std::byte*>(data);
    receive->bytes = bytes;
    Queue& queue = queues_[key];
    queue.receives.push_back(receive);
    match(queue);
    return receive;
}

int ThreadWorld::group(int parent, const std::vector<int>& world_ranks, int rank) {
    const std::scoped_lock lock(mutex_);
    const int nth = made_by_ranks_[{parent, world_ranks, rank}]++;
    const int next = static_cast<int>(groups_.size()) + 1;
    return groups_.try_emplace({parent, world_ranks, nth}, next).first->second;
}

class ThreadStarted : public Completion {
public:
    ThreadStarted(Stage& stage, ThreadWorld& world, int group, std::vector<int> members, int rank,
                  std::size_t most)
        : Completion(stage),
          world_(world),
          group_(group),
          members_(std::move(members)),
          rank_(rank),
          most_(most) {}

    void start_send(const void* data, std::size_t bytes, int to, int tag) {
        require_room(to);
        sends_.push_back(
            world_.start_send({group_, members_[rank_], members_[to], tag}, data, bytes));
    }
    void start_receive(void* data, std::size_t bytes, int from, int tag) {
        require_room(from);
        receives_.push_back(
            world_.start_receive({group_, members_[from], members_[rank_], tag}, data, bytes));
    }
    void end() {
        world_.wait([this] { return all_ended(); });
        finish();
    }

private:
    void do_send(const void* data, std::size_t bytes, int to, int tag) override {
        start_send(data, bytes, to, tag);
    }
    void do_receive(void* data, std::size_t bytes, int from, int tag) override {
        start_receive(data, bytes, from, tag);
    }
    void do_wait() override { end(); }
    bool do_done() override {
        if (!world_.look([this] { return all_ended(); })) return false;
        finish();
        return true;
    }
    void require_room(int peer) const {
        if (peer < 0 || peer >= static_cast<int>(members_.size())) {
            throw MessengerError("there is no rank " + std::to_string(peer));
        }
        if (sends_.size() + receives_.size() == most_) {
            throw MessengerError("more messages than were prepared for");
        }
    }
    [[nodiscard]] bool all_ended() const {
        const auto ended = [](const auto& each) { return each->ended; };
        return std::ranges::all_of(sends_, ended) && std::ranges::all_of(receives_, ended);
    }
    void finish() {
        std::string error;
        for (const auto& receive : receives_) {
            if (error.empty()) error = receive->error;
        }
        sends_.clear();
        receives_.clear();
        if (!error.empty()) throw MessengerError(error);
    }

    ThreadWorld& world_;
    int group_;
    std::vector<int> members_;
    int rank_;
    std::size_t most_;
    std::vector<std::shared_ptr<ThreadWorld::Message>> sends_;
    std::vector<std::shared_ptr<ThreadWorld::Receive>> receives_;
};

// Collectives are messages of their own tag.
class ThreadMessenger : public Messenger {
public:
    // `members` are numbers in the world.
    ThreadMessenger(ThreadWorld& world, int group, std::vector<int> members, int rank)
        : Messenger(world.stages_[members[rank]]),
          world_(world),
          group_(group),
          members_(std::move(members)),
          rank_(rank) {}
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return static_cast<int>(members_.size()); }
    [[nodiscard]] std::unique_ptr<Completion> prepare(std::size_t most) override {
        return started(most);
    }

private:
    std::unique_ptr<ThreadStarted> started(
        std::size_t most = std::numeric_limits<std::size_t>::max()) {
        return std::make_unique<ThreadStarted>(own_stage(), world_, group_, members_, rank_, most);
    }
    void do_send(const void* data, std::size_t bytes, int to, int tag) override {
        const auto message = started();
        message->start_send(data, bytes, to, tag);
        message->end();
    }
    void do_receive(void* data, std::size_t bytes, int from, int tag) override {
        const auto message = started();
        message->start_receive(data, bytes, from, tag);
        message->end();
    }
    void do_barrier() override {
        std::byte none{};
        do_gatherv(&none, 0, &none, of_equal(0), 0);
        do_broadcast(&none, 0, 0);
    }
    void do_broadcast(void* data, std::size_t bytes, int root) override {
        const auto messages = started();
        for (int to = 0; rank_ == root && to < size(); ++to) {
            if (to != root) messages->start_send(data, bytes, to, kCollective);
        }
        if (rank_ != root) messages->start_receive(data, bytes, root, kCollective);
        messages->end();
    }
    void do_maximum(std::span<double> values) override {
        std::vector<double> all(values.size() * members_.size());
        do_gatherv(values.data(), values.size_bytes(), all.data(), of_equal(values.size_bytes()),
                   0);
        for (std::size_t at = 0; rank_ == 0 && at < all.size(); ++at) {
            double& greatest = values[at % values.size()];
            greatest = std::max(greatest, all[at]);
        }
        do_broadcast(values.data(), values.size_bytes(), 0);
    }
    void do_alltoall(const void* source, void* destination, std::size_t bytes_each) override {
        do_alltoallv(source, of_equal(bytes_each), destination, of_equal(bytes_each));
    }
    void do_alltoallv(const void* source, const Parts& parts, void* destination,
                      const Parts& destination_parts) override {
        const auto messages = started();
        for (int peer = 0; peer < size(); ++peer) {
            receive_part(*messages, destination, destination_parts, peer);
            send_part(*messages, source, parts, peer);
        }
        messages->end();
    }
    void do_scatterv(const void* source, const Parts& parts, void* destination, std::size_t bytes,
                     int root) override {
        const auto messages = started();
        messages->start_receive(destination, bytes, root, kCollective);
        for (int to = 0; rank_ == root && to < size(); ++to) {
            send_part(*messages, source, parts, to);
        }
        messages->end();
    }
    void do_gatherv(const void* source, std::size_t bytes, void* destination, const Parts& parts,
                    int root) override {
        const auto messages = started();
        messages->start_send(source, bytes, root, kCollective);
        for (int from = 0; rank_ == root && from < size(); ++from) {
            receive_part(*messages, destination, parts, from);
        }
        messages->end();
    }
    std::unique_ptr<Messenger> do_group(std::span<const int> chosen) override {
        std::vector<int> members;
        for (const int each : chosen) members.push_back(members_.at(each));
        const int number = world_.group(group_, members, members_[rank_]);
        const auto own = std::ranges::find(chosen, rank_) - chosen.begin();
        auto group =
            std::make_unique<ThreadMessenger>(world_, number, members, static_cast<int>(own));
        group->do_barrier();  // MPI makes one when all are there
        return group;
    }

    [[nodiscard]] Parts of_equal(std::size_t bytes) const {
        return Parts::in_order(std::vector(members_.size(), bytes));
    }
    static void send_part(ThreadStarted& messages, const void* source, const Parts& parts, int to) {
        messages.start_send(static_cast<const std::byte*>(source) + parts.offsets[to],
                            parts.bytes[to], to, kCollective);
    }
    static void receive_part(ThreadStarted& messages, void* destination, const Parts& parts,
                             int from) {
        messages.start_receive(static_cast<std::byte*>(destination) + parts.offsets[from],
                               parts.bytes[from], from, kCollective);
    }

    ThreadWorld& world_;
    int group_;
    std::vector<int> members_;
    int rank_;
};

void ThreadWorld::run(const std::function<void(Messenger&)>& work) {
    std::vector<int> all;
    for (int rank = 0; rank < size_; ++rank) all.push_back(rank);
    std::exception_ptr first;
    std::mutex of_first;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size_; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                ThreadMessenger messenger(*this, 0, all, rank);
                work(messenger);
            } catch (...) {
                {
                    const std::scoped_lock lock(of_first);
                    if (!first) first = std::current_exception();
                }
                end();
            }
        });
    }
    threads.clear();
    if (first) std::rethrow_exception(first);
}

}  // namespace waywiser::test
