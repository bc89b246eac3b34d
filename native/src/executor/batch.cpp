// Copies a list of pieces by one call of the runtime.
#include <algorithm>
#include <vector>

#include "executor/pieces.hpp"
#include "executor/reach.hpp"
#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class BatchExecution final : public Execution {
public:
    BatchExecution(bool stream_order, gpu::Stream& stream)
        : stream_order_(stream_order), stream_(stream) {}

    void start(const View& source, const View& destination) override {
        address(source, destination);
        const std::size_t piece =
            source.arrangement == nullptr ? source.bytes : source.arrangement->run;
        gpu::copy_batch_async(to_, from_, piece, stream_order_, stream_);
    }

    void finish() override { stream_.synchronize(); }

private:
    // The addresses of all pieces, made again only for other bytes: programs with tables of blocks
    // have them.
    void address(const View& source, const View& destination) {
        if (source.data == source_ && destination.data == destination_ &&
            source.arrangement == arrangement_) {
            return;
        }
        from_.clear();
        to_.clear();
        for_each_piece(destination, source, 0, source.bytes,
                       [this](std::byte* to, const std::byte* from, std::size_t) {
                           to_.push_back(to);
                           from_.push_back(from);
                       });
        source_ = source.data;
        destination_ = destination.data;
        arrangement_ = source.arrangement;
    }

    bool stream_order_;
    gpu::Stream& stream_;
    const std::byte* source_ = nullptr;
    const std::byte* destination_ = nullptr;
    const Arrangement* arrangement_ = nullptr;
    std::vector<const void*> from_;
    std::vector<void*> to_;
};

class Batch final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "batch",
            .description = "the runtime's batched copy: all pieces of a list by one call",
            .parameters = {access()},
            .source = "CUDA runtime API 12.8 (cudaMemcpyBatchAsync)"};
        return info;
    }

    [[nodiscard]] bool serves(Layout::Kind kind) const override {
        return kind == Layout::Kind::list;
    }

    // Whether the runtime has the call is known where it runs: prepare() says so.
    [[nodiscard]] std::optional<std::string> refusal(const Transfer& transfer,
                                                     const Machine& machine) const override {
        const Path& path = transfer.path;
        if (!path.source.on_gpu() && !path.destination.on_gpu()) {
            return "a batched copy needs a side on a GPU";
        }
        for (const Memory* memory : {&path.source, &path.destination}) {
            if (auto reason = copy_refusal(*memory)) return reason;
        }
        if (between_gpus(path) && !direct_access(path, machine)) {
            return path.source.place.text() + " and " + path.destination.place.text() +
                   " cannot access each other's memory directly";
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {access()};
    }

    [[nodiscard]] std::optional<bool> peer_access(const Transfer& transfer,
                                                  const Machine&) const override {
        if (!between_gpus(transfer.path)) return std::nullopt;
        return true;
    }

    // How many entries of a stream's queue a batch takes is not documented: with one for each piece
    // a long list would block its host behind a closed gate. The host's part in handing over a list
    // is also what one wants to compare.
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        const Path& path = transfer.path;
        return {(path.source.on_gpu() ? path.source : path.destination).place.index};
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(
        const Transfer& transfer, const Machine& machine,
        const std::vector<gpu::Stream*>& lanes, transfer::Engine&) const override {
        if (!gpu::has_batch()) {
            throw Refused(
                "batched copies need a CUDA runtime and driver of 12.8 or later; here are " +
                gpu::runtime_version() + " and " + gpu::driver_version());
        }
        const bool stream_order = parameter(*this, transfer, machine, "access") == "stream";
        return std::make_unique<BatchExecution>(stream_order, *lanes.front());
    }

private:
    static Parameter access() {
        return {.name = "access",
                .description =
                    "sources are read when the stream gets there (stream), or at any time from the "
                    "call on (any)",
                .choices = {"stream", "any"}};
    }
};

const Registered<Executor, Batch> registered;

}  // namespace
}  // namespace waywiser
