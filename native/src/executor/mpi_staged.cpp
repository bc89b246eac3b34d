// Messages from and to pinned memory, with a copy at each end whose memory is on a GPU: whole (the
// 3-step method), or in chunks whose copies and messages overlap.
#include <algorithm>
#include <optional>

#include "executor/between_ranks.hpp"
#include "gpu/gpu.hpp"

namespace waywiser {
namespace {

constexpr const char* kWhole = "whole";

// Pinned memory of one chunk on its way between a GPU and a message.
class Slot {
public:
    Slot(ranks::Messenger& pair, std::size_t bytes, int gpu)
        : pinned_(bytes, gpu::HostUse::portable, gpu),
          copied_(gpu, gpu::EventUse::ordering),
          message_(pair.prepare(1)) {}

    std::byte* data() { return pinned_.data(); }
    gpu::Event& copied() { return copied_; }
    ranks::Completion& message() { return *message_; }

private:
    gpu::HostBuffer pinned_;
    gpu::Event copied_;
    std::unique_ptr<ranks::Completion> message_;
};

// The chunks of a view.
struct Chunks {
    const View& view;
    std::size_t bytes;  // of each but the last

    [[nodiscard]] std::size_t count() const { return (view.bytes + bytes - 1) / bytes; }
    [[nodiscard]] std::byte* data(std::size_t n) const { return view.data + n * bytes; }
    [[nodiscard]] std::size_t size(std::size_t n) const {
        return std::min(bytes, view.bytes - n * bytes);
    }
};

// The end whose memory is on a GPU: chunk n passes through slot n % slots.
class StagedEnd final : public RoundTrip {
public:
    StagedEnd(ranks::Messenger& pair, Side side, std::size_t chunk, std::size_t slots,
              gpu::Stream& stream)
        : RoundTrip(side), peer_(peer_of(side)), chunk_(chunk), stream_(stream) {
        for (std::size_t n = 0; n < slots; ++n) {
            slots_.push_back(std::make_unique<Slot>(pair, chunk, stream.device()));
        }
    }

private:
    Slot& slot(std::size_t chunk) { return *slots_[chunk % slots_.size()]; }

    void send(const View& view) override {
        const Chunks chunks{view, chunk_};
        const auto copy = [&](std::size_t n) {
            gpu::copy_async(slot(n).data(), chunks.data(n), chunks.size(n), stream_);
            slot(n).copied().record(stream_);
        };
        for (std::size_t n = 0; n < std::min(slots_.size(), chunks.count()); ++n) copy(n);
        for (std::size_t n = 0; n < chunks.count(); ++n) {
            slot(n).copied().synchronize();
            slot(n).message().send(slot(n).data(), chunks.size(n), peer_);
            // The next chunk's copy is already on its way, unless there is one slot only.
            if (const std::size_t next = n + slots_.size(); next < chunks.count()) {
                slot(n).message().wait();
                copy(next);
            }
        }
        wait_for_messages(chunks.count());
    }

    void receive(const View& view) override {
        const Chunks chunks{view, chunk_};
        const auto message = [&](std::size_t n) {
            slot(n).message().receive(slot(n).data(), chunks.size(n), peer_);
        };
        for (std::size_t n = 0; n < std::min(slots_.size(), chunks.count()); ++n) message(n);
        for (std::size_t n = 0; n < chunks.count(); ++n) {
            slot(n).message().wait();
            gpu::copy_async(chunks.data(n), slot(n).data(), chunks.size(n), stream_);
            slot(n).copied().record(stream_);
            if (const std::size_t next = n + slots_.size(); next < chunks.count()) {
                slot(n).copied().synchronize();
                message(next);
            }
        }
        stream_.synchronize();
    }

    void wait_for_messages(std::size_t chunks) {
        for (std::size_t n = 0; n < std::min(slots_.size(), chunks); ++n) slot(n).message().wait();
    }

    int peer_;
    std::size_t chunk_;
    gpu::Stream& stream_;
    std::vector<std::unique_ptr<Slot>> slots_;
};

// The end whose memory is the host's: messages from and to it.
class HostEnd final : public RoundTrip {
public:
    HostEnd(ranks::Messenger& pair, Side side, std::size_t chunk, std::size_t bytes)
        : RoundTrip(side),
          peer_(peer_of(side)),
          chunk_(chunk),
          started_(pair.prepare((bytes + chunk - 1) / chunk)) {}

private:
    void send(const View& view) override {
        const Chunks chunks{view, chunk_};
        for (std::size_t n = 0; n < chunks.count(); ++n) {
            started_->send(chunks.data(n), chunks.size(n), peer_);
        }
        started_->wait();
    }
    void receive(const View& view) override {
        const Chunks chunks{view, chunk_};
        for (std::size_t n = 0; n < chunks.count(); ++n) {
            started_->receive(chunks.data(n), chunks.size(n), peer_);
        }
        started_->wait();
    }

    int peer_;
    std::size_t chunk_;
    std::unique_ptr<ranks::Completion> started_;
};

class MpiStaged final : public BetweenRanks {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "mpi-staged",
            .description = "copies between GPUs and pinned memory at the ends of MPI messages",
            .parameters = {{.name = "chunk",
                            .description = "bytes of a message; whole: first all is copied, then "
                                           "sent, then copied",
                            .choices = {kWhole, "65536", "262144", "1048576", "2097152", "4194304",
                                        "16777216"}},
                           {.name = "buffers",
                            .description = "chunks on their way at once at each end",
                            .kind = ParameterKind::ordered,
                            .choices = {"2", "3", "4"}}},
            .source =
                "Auto-tuning of Data Communication on Heterogeneous Systems, sec. IV (double "
                "buffering); Bienz et al., Modeling Data Movement Performance on "
                "Heterogeneous Architectures, sec. III (3-step)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.survey_only = true,
                .settings_on_request = true,
                .family = Family::staged,
                .shares = {.file_system = false},
                .route = Route::between_ranks};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        if (auto reason = BetweenRanks::unsupported_reason(transfer, machine)) return reason;
        if (local_memory(transfer.path.source, machine).on_gpu() ||
            local_memory(transfer.path.destination, machine).on_gpu()) {
            return std::nullopt;
        }
        return "neither end is on a GPU: nothing is staged";
    }

    [[nodiscard]] Requirements requirements(const Transfer& transfer,
                                            const Machine& machine) const override {
        Requirements needs;
        for (const Memory* memory : {&transfer.path.source, &transfer.path.destination}) {
            const Memory local = local_memory(*memory, machine);
            if (!local.on_gpu()) continue;
            needs.pinned_bytes += slots(transfer, machine) * chunk(transfer, machine);
            needs.host_links.push_back(local.place.index);
        }
        return needs;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare_end(const Transfer& transfer,
                                                         const Machine& machine, Side side,
                                                         const std::vector<gpu::Stream*>& lanes,
                                                         ranks::Messenger& pair) const override {
        const std::size_t bytes = chunk(transfer, machine);
        if (lanes.empty()) return std::make_unique<HostEnd>(pair, side, bytes, transfer.bytes);
        return std::make_unique<StagedEnd>(pair, side, bytes, slots(transfer, machine),
                                           *lanes.front());
    }

private:
    [[nodiscard]] std::size_t message_bytes(const Transfer& transfer,
                                            const Machine& machine) const override {
        return chunk(transfer, machine);
    }
    [[nodiscard]] std::size_t chunk(const Transfer& transfer, const Machine& machine) const {
        const std::string chosen = parameter(*this, transfer, machine, "chunk");
        return chosen == kWhole ? transfer.bytes : std::min(std::stoul(chosen), transfer.bytes);
    }
    [[nodiscard]] std::size_t slots(const Transfer& transfer, const Machine& machine) const {
        const std::size_t chunks =
            (transfer.bytes + chunk(transfer, machine) - 1) / chunk(transfer, machine);
        return std::min(number(transfer, machine, "buffers"), chunks);
    }
};

const Registered<Executor, MpiStaged> registered;

}  // namespace
}  // namespace waywiser
