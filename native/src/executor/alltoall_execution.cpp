#include "executor/alltoall_execution.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "executor/alltoall_packing.hpp"
#include "gpu/gpu.hpp"
#include "ranks/messenger.hpp"

namespace waywiser::alltoall {
namespace {

ranks::Parts parts_of(const std::vector<Range>& ranges) {
    ranks::Parts parts;
    for (const Range& range : ranges) {
        parts.bytes.push_back(static_cast<int>(range.bytes));
        parts.offsets.push_back(static_cast<int>(range.offset));
    }
    return parts;
}

// The messages among the equal lanes of all memories, of which each rank has one lane.
class Crossing {
public:
    Crossing(const Plan& plan, ranks::Messenger& lanes, ranks::Parts sent, ranks::Parts received)
        : lanes_(lanes), sent_(std::move(sent)), received_(std::move(received)), even_(plan.even) {
        if (plan.pairs) started_ = lanes.prepare(2 * plan.memories());
    }

    void start(const std::byte* from, std::byte* to) {
        if (started_) {
            pairs(from, to);
        } else if (even_) {
            lanes_.alltoall(from, to, static_cast<std::size_t>(sent_.bytes.front()));
        } else {
            lanes_.alltoallv(from, sent_, to, received_);
        }
    }

private:
    // Each begins with another peer, so that not all send to the same one. Empty messages are
    // skipped.
    void pairs(const std::byte* from, std::byte* to) {
        for (int n = 0; n < lanes_.size(); ++n) {
            const int peer = (lanes_.rank() + n) % lanes_.size();
            if (received_.bytes[peer] == 0) continue;
            started_->receive(to + received_.offsets[peer], received_.bytes[peer], peer);
        }
        for (int n = 0; n < lanes_.size(); ++n) {
            const int peer = (lanes_.rank() + n) % lanes_.size();
            if (sent_.bytes[peer] == 0) continue;
            started_->send(from + sent_.offsets[peer], sent_.bytes[peer], peer);
        }
        started_->wait();
    }

    ranks::Messenger& lanes_;
    ranks::Parts sent_;
    ranks::Parts received_;
    bool even_;
    std::unique_ptr<ranks::Completion> started_;
};

// The ends of a GPU as each of its ranks addresses them: the first has them, the others open them.
class SharedEnds {
public:
    SharedEnds(const View& source, const View& destination, int gpu, ranks::Messenger& own) {
        if (own.size() == 1) return;
        std::array<Offer, 2> offers;
        if (own.rank() == 0) offers = {offered(source), offered(destination)};
        own.broadcast(offers.data(), sizeof offers, 0);
        if (std::ranges::find(offers, State::failed, &Offer::state) != offers.end()) {
            throw NotSupported("the memory of gpu:" + std::to_string(gpu) +
                               " cannot be shared with other processes");
        }
        for (std::size_t n = 0; own.rank() > 0 && n < offers.size(); ++n) {
            if (offers[n].state == State::shared) opened_[n].emplace(gpu, offers[n].handle);
        }
    }
    [[nodiscard]] std::byte* source(std::byte* own) const { return address(0, own); }
    [[nodiscard]] std::byte* destination(std::byte* own) const { return address(1, own); }

private:
    enum class State { none, shared, failed };
    struct Offer {
        State state = State::none;
        gpu::ForeignHandle handle{};
    };
    static Offer offered(const View& view) {
        if (view.data == nullptr) return {};
        try {
            return {State::shared, gpu::foreign_handle(view.data)};
        } catch (const gpu::Error&) {
            return {.state = State::failed};
        }
    }
    [[nodiscard]] std::byte* address(std::size_t n, std::byte* own) const {
        return opened_[n] ? opened_[n]->data() : own;
    }

    std::array<std::optional<gpu::OpenedBuffer>, 2> opened_;
};

// The groups of a rank: the equal lanes of all memories, and the ranks of its own memory.
struct Groups {
    std::unique_ptr<ranks::Messenger> lanes, own;
};

// Messages from and to memory as it is.
class Direct final : public Execution {
public:
    Direct(const Plan& plan, std::size_t memory, Groups groups)
        : groups_(std::move(groups)),
          crossing_(plan, *groups_.lanes, parts_of(plan.read(memory, 0)),
                    parts_of(plan.written(memory, 0))) {}
    void start(const View& source, const View& destination) override {
        crossing_.start(source.data, destination.data);
    }

private:
    Groups groups_;
    Crossing crossing_;
};

// What all strategies with copies have in common: pinned memory of this rank's part, and messages
// from and to it.
class Lane {
public:
    Lane(const Plan& plan, std::size_t memory, std::size_t lane, const gpu::Stream& stream,
         ranks::Messenger& lanes)
        : read_(plan.read(memory, lane)),
          written_(plan.written(memory, lane)),
          sent_(pinned(read_.bytes(), stream)),
          received_(pinned(written_.bytes(), stream)),
          crossing_(plan, lanes, parts_of(read_.packed()), parts_of(written_.packed())) {}

    static gpu::HostBuffer pinned(std::size_t bytes, const gpu::Stream& stream) {
        return {std::max<std::size_t>(bytes, 1), gpu::HostUse::portable, stream.device()};
    }

    [[nodiscard]] const Packing& read() const { return read_; }
    [[nodiscard]] const Packing& written() const { return written_; }
    [[nodiscard]] std::byte* sent() const { return sent_.data(); }
    [[nodiscard]] std::byte* received() const { return received_.data(); }
    void cross() { crossing_.start(sent_.data(), received_.data()); }

private:
    Packing read_;
    Packing written_;
    gpu::HostBuffer sent_;
    gpu::HostBuffer received_;
    Crossing crossing_;
};

// Each rank copies its own part: 3-step with one rank of each memory, duplicate pointer with
// several. Of these the last to end its copy ends the exchange.
class OwnCopies final : public Execution {
public:
    OwnCopies(const Plan& plan, std::size_t memory, std::size_t lane, const View& source,
              const View& destination, const gpu::Stream& stream, Groups groups)
        : groups_(std::move(groups)),
          stream_(stream),
          ends_(source, destination, stream.device(), *groups_.own),
          lane_(plan, memory, lane, stream, *groups_.lanes) {}

    void start(const View& source, const View& destination) override {
        lane_.read().take(lane_.sent(), ends_.source(source.data), stream_);
        stream_.synchronize();
        lane_.cross();
        lane_.written().put(ends_.destination(destination.data), lane_.received(), stream_);
        stream_.synchronize();
        if (groups_.own->size() > 1) groups_.own->barrier();
    }

private:
    Groups groups_;
    const gpu::Stream& stream_;
    SharedEnds ends_;
    Lane lane_;
};

// The parts of all ranks of a memory in the pinned memory of the first, lane after lane.
class Parcels {
public:
    Parcels(std::vector<Packing> packings, const gpu::Stream& stream)
        : packings_(std::move(packings)) {
        std::vector<std::size_t> bytes;
        for (const Packing& packing : packings_) bytes.push_back(packing.bytes());
        parts_ = ranks::Parts::in_order(bytes);
        const std::size_t total = static_cast<std::size_t>(parts_.offsets.back()) + bytes.back();
        host_.emplace(Lane::pinned(total, stream));
    }
    [[nodiscard]] std::byte* data() const { return host_->data(); }
    [[nodiscard]] const ranks::Parts& parts() const { return parts_; }
    void take(const std::byte* memory, const gpu::Stream& stream) const {
        for (std::size_t n = 0; n < packings_.size(); ++n) {
            packings_[n].take(data() + parts_.offsets[n], memory, stream);
        }
        stream.synchronize();
    }
    void put(std::byte* memory, const gpu::Stream& stream) const {
        for (std::size_t n = 0; n < packings_.size(); ++n) {
            packings_[n].put(memory, data() + parts_.offsets[n], stream);
        }
        stream.synchronize();
    }

private:
    std::vector<Packing> packings_;
    ranks::Parts parts_;
    std::optional<gpu::HostBuffer> host_;
};

// The first rank of a memory copies all and hands the others their parts in a message.
class ExtraMessage final : public Execution {
public:
    ExtraMessage(const Plan& plan, std::size_t memory, std::size_t lane, const gpu::Stream& stream,
                 Groups groups)
        : groups_(std::move(groups)),
          stream_(stream),
          lane_(plan, memory, lane, stream, *groups_.lanes) {
        if (lane > 0) return;
        std::vector<Packing> read, written;
        for (std::size_t n = 0; n < plan.lanes(); ++n) {
            read.emplace_back(plan.read(memory, n));
            written.emplace_back(plan.written(memory, n));
        }
        taken_.emplace(std::move(read), stream);
        put_.emplace(std::move(written), stream);
    }

    void start(const View& source, const View& destination) override {
        if (taken_) taken_->take(source.data, stream_);
        static const ranks::Parts none;
        groups_.own->scatterv(taken_ ? taken_->data() : nullptr, taken_ ? taken_->parts() : none,
                              lane_.sent(), lane_.read().bytes(), 0);
        lane_.cross();
        groups_.own->gatherv(lane_.received(), lane_.written().bytes(),
                             put_ ? put_->data() : nullptr, put_ ? put_->parts() : none, 0);
        if (put_) put_->put(destination.data, stream_);
    }

private:
    Groups groups_;
    const gpu::Stream& stream_;
    Lane lane_;
    std::optional<Parcels> taken_, put_;
};

// The memory and lane of a rank.
struct Seat {
    std::size_t memory = 0;
    std::size_t lane = 0;
};

int position(const std::vector<int>& members, int rank) {
    return static_cast<int>(std::ranges::find(members, rank) - members.begin());
}

Seat seat_of(const Plan& plan, int rank) {
    for (std::size_t memory = 0; memory < plan.memories(); ++memory) {
        const auto found = std::ranges::find(plan.ranks[memory], rank);
        if (found == plan.ranks[memory].end()) continue;
        return {memory, static_cast<std::size_t>(found - plan.ranks[memory].begin())};
    }
    throw NotSupported("rank:" + std::to_string(rank) + " takes no part");
}

Groups groups_of(const Plan& plan, const std::vector<int>& members, Seat seat,
                 ranks::Messenger& group) {
    std::vector<int> lanes, own;
    for (const std::vector<int>& ranks : plan.ranks) {
        lanes.push_back(position(members, ranks[seat.lane]));
    }
    for (const int rank : plan.ranks[seat.memory]) own.push_back(position(members, rank));
    return {group.group(lanes), group.group(own)};
}

}  // namespace

std::size_t staging_bytes(const Plan& plan) {
    if (!plan.staged()) return 0;
    std::size_t bytes = 0;
    for (std::size_t memory = 0; memory < plan.memories(); ++memory) {
        for (std::size_t lane = 0; lane < plan.lanes(); ++lane) {
            bytes += Packing(plan.read(memory, lane)).bytes();
            bytes += Packing(plan.written(memory, lane)).bytes();
        }
    }
    return plan.hands_on() ? 2 * bytes : bytes;
}

std::unique_ptr<Execution> prepare(const Plan& plan, const View& source, const View& destination,
                                   const gpu::Stream* stream, ranks::Messenger& group) {
    const std::vector<int> members = plan.participants();
    const Seat seat = seat_of(plan, members[static_cast<std::size_t>(group.rank())]);
    Groups groups = groups_of(plan, members, seat, group);
    if (!plan.staged()) {
        return std::make_unique<Direct>(plan, seat.memory, std::move(groups));
    }
    if (plan.hands_on()) {
        return std::make_unique<ExtraMessage>(plan, seat.memory, seat.lane, *stream,
                                              std::move(groups));
    }
    return std::make_unique<OwnCopies>(plan, seat.memory, seat.lane, source, destination, *stream,
                                       std::move(groups));
}

}  // namespace waywiser::alltoall
