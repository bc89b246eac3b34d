// Messages from memory as it is: host memory, or that of a GPU where the library of messages takes
// its addresses.
#include "executor/between_ranks.hpp"

namespace waywiser {
namespace {

// A round trip of one message, as osu_latency makes it: by calls that return when it is sent or has
// arrived.
class PingPong final : public RoundTrip {
public:
    PingPong(ranks::Messenger& pair, Side side)
        : RoundTrip(side), pair_(pair), peer_(peer_of(side)) {}

private:
    void send(const View& view) override { pair_.send(view.data, view.bytes, peer_); }
    void receive(const View& view) override { pair_.receive(view.data, view.bytes, peer_); }

    ranks::Messenger& pair_;
    int peer_;
};

// A round trip of several messages at once. All are sent from one buffer and received in one, as
// OSU's tests do.
class WindowedPingPong final : public RoundTrip {
public:
    WindowedPingPong(ranks::Messenger& pair, Side side, std::size_t window)
        : RoundTrip(side, window),
          started_(pair.prepare(window)),
          peer_(peer_of(side)),
          window_(window) {}

private:
    void send(const View& view) override {
        for (std::size_t n = 0; n < window_; ++n) started_->send(view.data, view.bytes, peer_);
        started_->wait();
    }
    void receive(const View& view) override {
        for (std::size_t n = 0; n < window_; ++n) started_->receive(view.data, view.bytes, peer_);
        started_->wait();
    }

    std::unique_ptr<ranks::Completion> started_;
    int peer_;
    std::size_t window_;
};

// Messages in one direction, a window of them at once; an empty message back ends the window.
class Stream final : public Execution {
public:
    Stream(ranks::Messenger& pair, Side side, std::size_t window)
        : pair_(pair), side_(side), window_(window), started_(pair.prepare(window)) {}

    void start(const View& source, const View& destination) override {
        if (in_flight_ == window_) end();
        if (side_ == Side::source) {
            started_->send(source.data, source.bytes, peer_of(side_));
        } else {
            started_->receive(destination.data, destination.bytes, peer_of(side_));
        }
        ++in_flight_;
    }
    void finish() override {
        if (in_flight_ > 0) end();
    }
    [[nodiscard]] std::size_t window() const override { return window_; }

private:
    void end() {
        started_->wait();
        in_flight_ = 0;
        if (side_ == Side::source) {
            pair_.receive(nullptr, 0, peer_of(side_));
        } else {
            pair_.send(nullptr, 0, peer_of(side_));
        }
    }

    ranks::Messenger& pair_;
    Side side_;
    std::size_t window_;
    std::unique_ptr<ranks::Completion> started_;
    std::size_t in_flight_ = 0;
};

const std::vector<std::string> kWindows{"1", "4", "16", "64"};

class Mpi final : public BetweenRanks {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "mpi",
            .description = "MPI messages from and to memory as it is",
            .parameters = {{.name = "test",
                            .description =
                                "half a round trip, or messages in one direction and an answer",
                            .choices = {"latency", "bw"}},
                           {.name = "window",
                            .description = "messages in flight at once, each with the bytes",
                            .kind = ParameterKind::ordered,
                            .choices = kWindows}},
            .source =
                "OSU micro-benchmarks (osu_latency, osu_bw); Lockhart et al., Characterizing "
                "the performance of node-aware strategies for irregular point-to-point "
                "communication"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {
            .survey_only = true, .shares = {.file_system = false}, .route = Route::between_ranks};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        if (auto reason = BetweenRanks::unsupported_reason(transfer, machine)) return reason;
        for (const Memory* memory : {&transfer.path.source, &transfer.path.destination}) {
            if (!is_unsent(*memory, machine)) continue;
            return "the MPI library does not send " + memory->kind + " memory";
        }
        return std::nullopt;
    }

    // Many messages in one direction are those of a large window.
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine&) const override {
        std::vector<Parameter> found = info().parameters;
        const auto test = transfer.parameters.find("test");
        if (test != transfer.parameters.end() && test->second == "bw") {
            found.back().choices.assign(kWindows.rbegin(), kWindows.rend());
        }
        return found;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare_end(const Transfer& transfer,
                                                         const Machine& machine, Side side,
                                                         const std::vector<gpu::Stream*>&,
                                                         ranks::Messenger& pair) const override {
        const std::size_t window = number(transfer, machine, "window");
        if (parameter(*this, transfer, machine, "test") == "bw") {
            return std::make_unique<Stream>(pair, side, window);
        }
        if (window == 1) return std::make_unique<PingPong>(pair, side);
        return std::make_unique<WindowedPingPong>(pair, side, window);
    }
};

const Registered<Executor, Mpi> registered;

}  // namespace
}  // namespace waywiser
