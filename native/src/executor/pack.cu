// Copies scattered bytes as one contiguous piece: gathers them into staging memory, copies that,
// and scatters it at the destination. A kernel gathers or scatters on a GPU, CPU threads on the
// host.
#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "executor/cpu_mover.hpp"
#include "executor/reach.hpp"
#include "executor/runs.hpp"
#include "gpu/gpu.hpp"
#include "transfer/engine.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr unsigned kPackThreads = 512;
constexpr unsigned kBlocksPerMultiprocessor = 2;  // enough threads to keep a GPU's memory busy

// Whether the bytes are contiguous and in order.
bool together(const Arrangement& arrangement) {
    switch (arrangement.kind) {
        case Layout::Kind::contiguous: return true;
        case Layout::Kind::box: break;
        case Layout::Kind::list:
            return arrangement.extent == arrangement.run * arrangement.count &&
                   std::ranges::is_sorted(arrangement.offsets);
    }
    return false;
}

// Whether the runtime's copy can take the bytes directly, at full bandwidth.
bool copied_directly(const Memory& memory, const Arrangement& arrangement) {
    return together(arrangement) && known_to_gpus(memory);
}

transfer::Slot staging_of(std::optional<transfer::Slot> slot, const Memory& memory,
                          std::size_t bytes) {
    if (slot) return std::move(*slot);
    throw NotSupported("others hold the staging memory at " + memory.place.text() + ", and " +
                       std::to_string(bytes) + " bytes more exceed its budget: allow more memory");
}

// One end of the copy: gathers or scatters its side through staging memory that it owns.
class End {
public:
    virtual ~End() = default;
    [[nodiscard]] virtual std::byte* staging() const = 0;
    // Copies to and from the staging memory.
    virtual void gather(std::byte* to, const View& from) = 0;
    virtual void scatter(const View& to, std::byte* from) = 0;
    virtual void wake() {}
};

class GpuEnd final : public End {
public:
    GpuEnd(gpu::Stream& stream, const Arrangement& arrangement, transfer::Slot staging)
        : stream_(stream),
          shape_{.blocks = kBlocksPerMultiprocessor *
                           static_cast<unsigned>(gpu::device(stream.device()).multiprocessors),
                 .threads = kPackThreads},
          table_(&arrangement, stream.device()),
          staging_(std::move(staging)) {}

    [[nodiscard]] std::byte* staging() const override { return staging_.data(); }
    void gather(std::byte* to, const View& from) override {
        move_runs(stream_, shape_, Runs::together(to, from.bytes), table_.of(from, from.data));
    }
    void scatter(const View& to, std::byte* from) override {
        move_runs(stream_, shape_, table_.of(to, to.data), Runs::together(from, to.bytes));
    }

private:
    gpu::Stream& stream_;
    const gpu::Shape shape_;
    const RunTable table_;
    const transfer::Slot staging_;
};

class HostEnd final : public End {
public:
    // Staging memory is page-locked, at the node.
    HostEnd(const NumaNode& node, std::size_t threads, const Arrangement& arrangement,
            transfer::Slot staging)
        : memory_{"pinned", {Place::Kind::numa, node.index, {}}, {}},
          mover_(node.cpus, threads, false),
          arrangement_(arrangement),
          staging_(std::move(staging)) {}

    [[nodiscard]] std::byte* staging() const override { return staging_.data(); }
    void gather(std::byte* to, const View& from) override {
        check_arrangement(from, arrangement_);
        mover_.move({.data = to, .bytes = from.bytes, .memory = &memory_}, from);
    }
    void scatter(const View& to, std::byte* from) override {
        check_arrangement(to, arrangement_);
        mover_.move(to, {.data = from, .bytes = to.bytes, .memory = &memory_});
    }
    void wake() override { mover_.wake(); }

private:
    const Memory memory_;
    CpuMover mover_;
    const Arrangement arrangement_;
    const transfer::Slot staging_;
};

class PackExecution final : public Execution {
public:
    // The first lane copies; a second one scatters on another GPU, and the first waits for it. A
    // side without an end is copied directly.
    PackExecution(const Path& path, std::unique_ptr<End> source, std::unique_ptr<End> destination,
                  const std::vector<gpu::Stream*>& lanes)
        : path_(path),
          source_(std::move(source)),
          destination_(std::move(destination)),
          lanes_(lanes) {
        if (lanes.size() < 2) return;
        for (const gpu::Stream* lane : lanes) {
            done_.emplace_back(lane->device(), gpu::EventUse::ordering);
        }
    }

    ~PackExecution() override {
        for (const gpu::Stream* lane : lanes_) {
            try {
                lane->synchronize();       // a failed start may still use staging memory
            } catch (const gpu::Error&) {  // a lost context: nothing is in flight any more
            }
        }
    }
    PackExecution(const PackExecution&) = delete;
    PackExecution& operator=(const PackExecution&) = delete;

    void wake() override {
        for (End* end : {source_.get(), destination_.get()}) {
            if (end != nullptr) end->wake();
        }
    }

    void start(const View& source, const View& destination) override {
        std::byte* packed = source.data;
        if (source_) {
            packed = source_->staging();
            source_->gather(packed, source);
        }
        if (!destination_) {
            copy(destination.data, packed, source.bytes);
        } else if (path_.source.place == path_.destination.place) {
            destination_->scatter(destination, packed);  // on one GPU: already at the destination
        } else {
            std::byte* const arrived = destination_->staging();
            copy(arrived, packed, source.bytes);
            scatter(destination, arrived);
        }
    }

    void finish() override { lanes_.front()->synchronize(); }

    // Between GPUs: the gather, the copy, the event, and the wait for the second lane.
    [[nodiscard]] std::size_t entries() const override { return 4; }

private:
    void copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
        if (between_gpus(path_)) {
            gpu::copy_peer_async(to, path_.destination.place.index, from, path_.source.place.index,
                                 bytes, *lanes_.front());
        } else {
            gpu::copy_async(to, from, bytes, *lanes_.front());
        }
    }

    void scatter(const View& destination, std::byte* arrived) {
        if (!destination.memory->on_gpu()) lanes_.front()->synchronize();
        if (done_.empty()) return destination_->scatter(destination, arrived);
        done_.front().record(*lanes_.front());
        gpu::wait(*lanes_.back(), done_.front());
        destination_->scatter(destination, arrived);
        done_.back().record(*lanes_.back());
        gpu::wait(*lanes_.front(), done_.back());
    }

    Path path_;
    std::unique_ptr<End> source_;
    std::unique_ptr<End> destination_;
    std::vector<gpu::Stream*> lanes_;
    std::vector<gpu::Event> done_;  // one for each lane, if there are two
};

class Pack final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "pack",
            .description =
                "gathered into one piece by a kernel or CPU threads, copied, and scattered",
            .parameters = {threads({"1"})},
            .source = "Comm|Scope 0.12 (3d: pack, copy, unpack); Pearson et al., TEMPI, HPDC 2021"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.family = Family::kernel,
                .shares = {.file_system = false},
                .calls = {{.text = "pack kernel, cudaMemcpyAsync, unpack kernel"}}};
    }

    [[nodiscard]] bool serves(Layout::Kind kind) const override {
        return kind != Layout::Kind::contiguous;
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        if (!path.source.on_gpu() && !path.destination.on_gpu()) {
            return "packing needs a GPU on one side: between hosts the cpu executor moves the runs";
        }
        for (const Memory* memory : {&path.source, &path.destination}) {
            if (auto reason = copy_unsupported_reason(*memory)) return reason;
        }
        if (host_side(path) != nullptr && host_node(transfer, machine) == nullptr) {
            return "no CPU may be used";
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override {
        if (host_side(transfer.path) == nullptr) return {};
        const NumaNode* node = host_node(transfer, machine);
        return {threads(thread_choices(node == nullptr ? 1 : node->cpus.size()))};
    }

    [[nodiscard]] std::optional<bool> peer_access(const Transfer& transfer,
                                                  const Machine& machine) const override {
        if (!between_gpus(transfer.path)) return std::nullopt;
        return direct_access(transfer.path, machine);
    }

    // CPUs are not ordered in a stream, and copies between GPUs that the runtime stages block.
    [[nodiscard]] TimingMode timing(const Transfer& transfer,
                                    const Machine& machine) const override {
        const bool streams =
            host_side(transfer.path) == nullptr && peer_access(transfer, machine).value_or(true);
        return streams ? TimingMode::device : TimingMode::host;
    }

    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        const Path& path = transfer.path;
        if (!path.source.on_gpu()) return {path.destination.place.index};
        if (!between_gpus(path)) return {path.source.place.index};
        return {path.source.place.index, path.destination.place.index};
    }

    // Staging on each side that is gathered or scattered, in slots of a power of two, and the
    // tables of lists.
    [[nodiscard]] Requirements requirements(const Transfer& transfer,
                                            const Machine& machine) const override {
        Requirements needs = Executor::requirements(transfer, machine);
        const Path& path = transfer.path;
        const std::size_t slot = std::bit_ceil(transfer.bytes);
        for (const Memory* side : {&path.source, &path.destination}) {
            if (!side->on_gpu()) {
                needs.pinned_bytes += slot;
            } else {
                // Within one GPU, gather and scatter use the same staging memory.
                const bool staged = side == &path.source || path.source.place != side->place;
                needs.device_bytes[side->place.index] +=
                    (staged ? slot : 0) + table_bytes(transfer, 1);
            }
        }
        return needs;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine& engine) const override {
        const Path& path = transfer.path;
        const auto end = [&](Side side, const Memory& memory,
                             gpu::Stream& lane) -> std::unique_ptr<End> {
            const Arrangement arrangement = arrange(transfer, side);
            if (copied_directly(memory, arrangement)) return nullptr;
            const std::size_t bytes = transfer.bytes;
            if (memory.on_gpu()) {
                transfer::Slot staging;
                if (side == Side::source || path.source.place != memory.place) {
                    staging =
                        staging_of(engine.device_staging(lane.device(), bytes), memory, bytes);
                }
                return std::make_unique<GpuEnd>(lane, arrangement, std::move(staging));
            }
            const NumaNode& node = *host_node(transfer, machine);
            const auto count = std::stoul(parameter(*this, transfer, machine, "threads"));
            return std::make_unique<HostEnd>(
                node, count, arrangement,
                staging_of(engine.host_staging(node.index, lane.device(), bytes), memory, bytes));
        };
        return std::make_unique<PackExecution>(
            path, end(Side::source, path.source, *lanes.front()),
            end(Side::destination, path.destination, *lanes.back()), lanes);
    }

private:
    static Parameter threads(std::vector<std::string> choices) {
        return {.name = "threads",
                .description = "how many pinned threads gather or scatter at the host's side",
                .kind = ParameterKind::ordered,
                .choices = std::move(choices)};
    }
    static const Memory* host_side(const Path& path) {
        if (!path.source.on_gpu()) return &path.source;
        return path.destination.on_gpu() ? nullptr : &path.destination;
    }
    // The CPUs that gather or scatter: those of the host side, else those from which transfers are
    // started, else any.
    const NumaNode* host_node(const Transfer& transfer, const Machine& machine) const {
        const NumaNode* node = machine.node(submit_node(transfer, machine));
        if (node != nullptr && !node->cpus.empty()) return node;
        const auto any = std::ranges::find_if(
            machine.numa, [](const NumaNode& other) { return !other.cpus.empty(); });
        return any == machine.numa.end() ? nullptr : &*any;
    }
};

const Registered<Executor, Pack> registered;

}  // namespace
}  // namespace waywiser
