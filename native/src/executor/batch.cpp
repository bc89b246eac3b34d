// Copies a list of pieces by the driver's batched copy, many pieces in one call.
#include <algorithm>
#include <vector>

#include "executor/pieces.hpp"
#include "executor/reach.hpp"
#include "gpu/gpu.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// Pieces per call: with more pieces in one call the bandwidth falls (46 GB/s H2D by calls of 1,024
// pieces of 28 KiB, 27 GB/s by one call for all; measured on H200).
constexpr std::size_t kMostPieces = 1024;

// Immutable: each start computes its addresses from the offsets, in memory of the calling thread.
class BatchExecution final : public Execution {
public:
    BatchExecution(bool stream_order, gpu::Stream& stream, const Arrangement& source,
                   const Arrangement& destination)
        : stream_order_(stream_order), stream_(stream), from_(source), to_(destination) {}

    void start(const View& source, const View& destination) override {
        static thread_local std::vector<void*> to;
        static thread_local std::vector<const void*> from;
        check_arrangement(source, from_);
        check_arrangement(destination, to_);
        for (std::size_t first = 0; first < from_.count; first += kMostPieces) {
            const std::size_t last = std::min(from_.count, first + kMostPieces);
            to.clear();
            from.clear();
            for (std::size_t n = first; n < last; ++n) {
                to.push_back(start_of(destination, to_, n));
                from.push_back(start_of(source, from_, n));
            }
            gpu::copy_batch_async(to, from, from_.run, stream_order_, stream_);
        }
    }

    void finish() override { stream_.synchronize(); }

private:
    // The address of a piece; a view without an arrangement is contiguous.
    static std::byte* start_of(const View& view, const Arrangement& arrangement, std::size_t n) {
        return view.data +
               (view.arrangement == nullptr ? n * arrangement.run : arrangement.offset(n));
    }

    const bool stream_order_;
    gpu::Stream& stream_;
    const Arrangement from_;
    const Arrangement to_;
};

class Batch final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "batch",
            .description = "the runtime's batched copy: the pieces of a list in calls of 1,024",
            .parameters = {access()},
            .source = "CUDA runtime API 12.8 (cudaMemcpyBatchAsync)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.either_unit = true,
                .family = Family::runtime_copy,
                .shares = {.host_memory = false, .cpus = false, .file_system = false},
                .calls = {{.text = "cudaMemcpyBatchAsync"}},
                .library = {.lists = true}};
    }

    [[nodiscard]] bool serves(Layout::Kind kind) const override {
        return kind == Layout::Kind::list;
    }

    // Only prepare() can find out whether the driver supports the call.
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        if (!path.source.on_gpu() && !path.destination.on_gpu()) {
            return "a batched copy needs a side on a GPU";
        }
        for (const Memory* memory : {&path.source, &path.destination}) {
            if (auto reason = copy_unsupported_reason(*memory)) return reason;
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

    // The number of queue entries that a batch takes is not documented: with one for each piece a
    // long list would block its host behind a closed gate. Host timing also includes the host's
    // cost of submitting a list, which is worth comparing.
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        const Path& path = transfer.path;
        return {(path.source.on_gpu() ? path.source : path.destination).place.index};
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        if (!gpu::has_batch()) {
            throw NotSupported(
                "batched copies need a driver that supports CUDA 12.8 (R570 or later); this one "
                "supports " +
                gpu::driver_version());
        }
        const bool stream_order = parameter(*this, transfer, machine, "access") == "stream";
        return std::make_unique<BatchExecution>(stream_order, *lanes.front(),
                                                arrange(transfer, Side::source),
                                                arrange(transfer, Side::destination));
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
