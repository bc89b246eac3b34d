#include "executor/nccl_between_ranks.hpp"

#include <utility>

#include "executor/between_ranks.hpp"
#include "gpu/gpu.hpp"
#include "nccl/library.hpp"
#include "ranks/nccl_messenger.hpp"

namespace waywiser::nccl {
namespace {

// So many whole numbers below 65536 have a sum that is exact as a float.
constexpr std::size_t kMostExact = 256;

const ranks::NcclMessenger& of_nccl(const ranks::Messenger& messenger) {
    const auto* found = dynamic_cast<const ranks::NcclMessenger*>(&messenger);
    if (found == nullptr) throw NotSupported("the messages of this rank are not those of NCCL");
    return *found;
}

// The work of one rank: what is started follows on its lane, and ends with the connection.
class OnLane {
public:
    OnLane(const ranks::Messenger& group, gpu::Stream& lane)
        : group_(of_nccl(group)),
          connection_(group_.connection()),
          reserved_(connection_.reserve()),
          lane_(lane) {}

    void send(const std::byte* data, std::size_t bytes, int to) const {
        const ranks::Stage::Entered in(connection_.stage(), "send to", group_.number(to));
        connection_.submit([&] {
            check(functions().send(data, bytes, Type::int8, group_.number(to),
                                   connection_.communicator(), lane_.handle()),
                  "ncclSend");
        });
    }
    void receive(std::byte* data, std::size_t bytes, int from) const {
        const ranks::Stage::Entered in(connection_.stage(), "receive from", group_.number(from));
        connection_.submit([&] {
            check(functions().recv(data, bytes, Type::int8, group_.number(from),
                                   connection_.communicator(), lane_.handle()),
                  "ncclRecv");
        });
    }
    void take(Share share) const {
        const ranks::Stage::Entered in(connection_.stage(), "collective");
        share.stream = lane_.handle();
        share.shape.gpus = static_cast<std::size_t>(group_.size());
        connection_.submit([&] {
            share.communicator = connection_.communicator();
            enqueue(share);
        });
    }
    void await(const char* what) const {
        const ranks::Stage::Entered in(connection_.stage(), what);
        connection_.await(lane_);
    }
    void await(const char* what, int peer) const {
        const ranks::Stage::Entered in(connection_.stage(), what, group_.number(peer));
        connection_.await(lane_);
    }
    [[nodiscard]] int ranks() const { return group_.size(); }
    [[nodiscard]] int device() const { return lane_.device(); }

private:
    const ranks::NcclMessenger& group_;
    ranks::NcclConnection& connection_;
    std::shared_ptr<const void> reserved_;
    gpu::Stream& lane_;
};

class NcclPingPong final : public RoundTrip {
public:
    NcclPingPong(Side side, const OnLane& lane)
        : RoundTrip(side), lane_(lane), peer_(peer_of(side)) {}
    void finish() override { lane_.await("round trips with", peer_); }

private:
    void send(const View& view) override { lane_.send(view.data, view.bytes, peer_); }
    void receive(const View& view) override { lane_.receive(view.data, view.bytes, peer_); }

    OnLane lane_;
    int peer_;
};

// The answer is of one byte: the sender's work may end before all bytes have arrived.
class OneDirection final : public Execution {
public:
    OneDirection(std::size_t bytes, Side side, const OnLane& lane)
        : lane_(lane), side_(side), window_(calls_in_a_row(bytes)), answer_(lane.device(), 1) {}

    void start(const View& source, const View& destination) override {
        if (side_ == Side::source) {
            lane_.send(source.data, source.bytes, peer_of(side_));
        } else {
            lane_.receive(destination.data, destination.bytes, peer_of(side_));
        }
        started_ = true;
    }
    void finish() override {
        if (!std::exchange(started_, false)) return;
        if (side_ == Side::source) {
            lane_.receive(answer_.data(), 1, peer_of(side_));
            lane_.await("messages to", peer_of(side_));
        } else {
            lane_.send(answer_.data(), 1, peer_of(side_));
            lane_.await("messages from", peer_of(side_));
        }
    }
    [[nodiscard]] std::size_t window() const override { return window_; }

private:
    OnLane lane_;
    Side side_;
    std::size_t window_;
    gpu::DeviceBuffer answer_;
    bool started_ = false;
};

class CollectiveShare final : public Execution {
public:
    CollectiveShare(Collective collective, Type type, std::size_t bytes, const OnLane& lane)
        : share_{.collective = collective,
                 .type = type,
                 .shape = shape_of(collective, bytes, static_cast<std::size_t>(lane.ranks()))},
          window_(calls_in_a_row(bytes)),
          lane_(lane) {}

    void start(const View& source, const View& destination) override {
        Share share = share_;
        share.from = source.data;
        share.to = destination.data;
        lane_.take(share);
    }
    void finish() override { lane_.await("collectives"); }
    [[nodiscard]] std::size_t window() const override { return window_; }

private:
    Share share_;
    std::size_t window_;
    OnLane lane_;
};

}  // namespace

std::optional<std::string> ranks_unsupported_reason(const Transfer& transfer,
                                                    const Machine& machine, bool sums_floats) {
    const auto& [source, destination, executor] = transfer.path;
    for (const Memory* memory : {&source, &destination}) {
        for (const Memory& single : memory->each()) {
            const RankPlace* rank = machine.rank(single.place.index);
            if (rank == nullptr || rank->messages != "nccl") {
                return "nccl moves bytes within one process, or between nodes of a cluster";
            }
            if (!local_memory(single, machine).on_gpu()) return "NCCL moves bytes between GPUs";
        }
    }
    if ((source.place.several() || destination.place.several()) &&
        source.place != destination.place) {
        return "a collective has the same ranks at both ends";
    }
    if (sums_floats && source.each().size() > kMostExact) {
        return "sums of floats of more than " + std::to_string(kMostExact) +
               " ranks are not exact: write type=int32";
    }
    if (std::string reason = missing_reason(); !reason.empty()) return reason;
    return std::nullopt;
}

std::unique_ptr<Execution> prepare_message(MessageTest test, std::size_t bytes, Side side,
                                           gpu::Stream& lane, ranks::Messenger& pair) {
    const OnLane on_lane(pair, lane);
    if (test == MessageTest::round_trip) return std::make_unique<NcclPingPong>(side, on_lane);
    return std::make_unique<OneDirection>(bytes, side, on_lane);
}

std::unique_ptr<Execution> prepare_share(Collective collective, Type type, std::size_t bytes,
                                         gpu::Stream& lane, ranks::Messenger& group) {
    if (!of_nccl(group).is_whole()) {
        throw NotSupported("a collective is of all ranks that are connected");
    }
    return std::make_unique<CollectiveShare>(collective, type, bytes, OnLane(group, lane));
}

}  // namespace waywiser::nccl
