// Copies by a kernel (zero-copy if a side is on the host): GPU threads load from the source and
// store to the destination, wherever they are.
#include <algorithm>
#include <cstdint>

#include "executor/reach.hpp"
#include "executor/runs.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// The grid of the paper: 4 bytes per access, no cache hints.
constexpr gpu::Shape kPaper{.blocks = 256, .threads = 256};
// Enough bytes in flight for each of a GPU's links. By Little's law PCIe 5.0 x16 needs about 100 KB
// (64 GB/s for 1.5 us), NVLink about 1 MB (450 GB/s for 2 us) and an HBM3e stack a few MB (2.4 TB/s
// read for 0.8 us). A block of 512 threads with eight loads of 16 bytes each has 64 KiB in flight;
// two of them use all registers of a multiprocessor. Copies within a GPU use all of that. Over a
// link a part is enough, and leaves multiprocessors for concurrent kernels. Between two H200 a
// block on each multiprocessor is 0.8 % faster than one on every other, and more blocks are no
// faster (docs/results/2026-11-23-surveys). Over PCIe eight blocks that fill a multiprocessor each
// are as fast on an H200 as 33 halves. A matrix product beside H2D then takes 2.4 times as long,
// and not 11 times; beside D2H it takes 10 times as long with either
// (docs/results/2026-11-23-policy/blocks-over-pcie.md).
constexpr unsigned kTunedThreads = 512;
constexpr std::size_t kTunedAhead = 8;
constexpr unsigned kMostPerMultiprocessor = 2;
constexpr unsigned long kMostBlocks = 65535;  // largest value of a parameter
constexpr unsigned kMultiprocessorsPerHostBlock = 16;

// How a thread accesses memory: plainly, or with the hint to evict lines first that are not used
// again.
struct Plain {
    template <class Unit>
    WAYWISER_ON_GPU static Unit load(const Unit* from) {
        return *from;
    }
    template <class Unit>
    WAYWISER_ON_GPU static void store(Unit* to, Unit value) {
        *to = value;
    }
};

#if defined(__CUDACC__)
struct Streaming {
    template <class Unit>
    __device__ static Unit load(const Unit* from) {
        return __ldcs(from);
    }
    template <class Unit>
    __device__ static void store(Unit* to, Unit value) {
        __stcs(to, value);
    }
};
using Sixteen = uint4;
#else
using Streaming = Plain;
using Sixteen = gpu::Quad;
#endif

// Moves whole units that are aligned on both sides, and single bytes at the edges. Each thread has
// `kAhead` loads in flight before its first store.
template <class Access, class Unit, std::size_t kAhead>
struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
    std::size_t head;   // bytes before the first unit
    std::size_t units;  // whole units

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        const std::size_t round = kAhead * thread.count;
        std::size_t i = thread.index;
        for (; i + round - thread.count < units; i += round) move_round<true>(i, thread.count);
        if (i < units) move_round<false>(i, thread.count);
        for (std::size_t n = thread.index; n < head; n += thread.count) to[n] = from[n];
        for (std::size_t n = head + units * sizeof(Unit) + thread.index; n < bytes;
             n += thread.count) {
            to[n] = from[n];
        }
    }

private:
    // Moves the units of a round, `apart` units from each other. Tests for the end unless all are
    // there.
    template <bool kAll>
    WAYWISER_ON_GPU void move_round(std::size_t first, std::size_t apart) const {
        const auto* source = reinterpret_cast<const Unit*>(from + head) + first;
        auto* destination = reinterpret_cast<Unit*>(to + head) + first;
        Unit taken[kAhead] = {};
        WAYWISER_UNROLL for (std::size_t a = 0; a < kAhead; ++a) {
            if (kAll || first + a * apart < units) taken[a] = Access::load(source + a * apart);
        }
        WAYWISER_UNROLL for (std::size_t a = 0; a < kAhead; ++a) {
            if (kAll || first + a * apart < units) Access::store(destination + a * apart, taken[a]);
        }
    }
};

// Maximum number of blocks.
struct Grid {
    bool paper = false;
    unsigned blocks = 0;
    unsigned threads = kTunedThreads;
    gpu::Shape of_runs;  // for bytes in runs
};

bool with_host(const Path& path) { return !path.source.on_gpu() || !path.destination.on_gpu(); }

// For a list over the link to the host, the number of blocks is a parameter, and blocks are as
// large as possible: a block has 128 KiB in flight.
bool by_whole_blocks(const Transfer& transfer) {
    return transfer.layout.kind == Layout::Kind::list && with_host(transfer.path);
}

Grid tuned(const Path& path, unsigned multiprocessors) {
    const unsigned all = multiprocessors * kMostPerMultiprocessor;
    unsigned blocks = all;
    unsigned threads = kTunedThreads;
    if (with_host(path)) {
        blocks = multiprocessors / kMultiprocessorsPerHostBlock;
        threads = 2 * kTunedThreads;  // they use all registers of a multiprocessor
    } else if (between_gpus(path)) {
        blocks = multiprocessors;
    }
    return {.blocks = std::max(blocks, 1U),
            .threads = threads,
            .of_runs = {.blocks = std::max(all, 1U), .threads = kTunedThreads}};
}

// Immutable: a start changes nothing.
class SmExecution final : public Execution {
public:
    SmExecution(gpu::Stream& stream, const Grid& grid, const Arrangement& source,
                const Arrangement& destination)
        : stream_(stream),
          grid_(grid),
          from_(&source, stream.device()),
          to_(&destination, stream.device()) {}

    void start(const View& source, const View& destination) override {
        std::byte* const from = reached_at(source, stream_.device());
        std::byte* const to = reached_at(destination, stream_.device());
        if (source.arrangement != nullptr || destination.arrangement != nullptr) {
            const std::size_t widest = grid_.paper ? 4 : 16;
            move_runs(stream_, shape(source.bytes / widest, grid_.of_runs), to_.of(destination, to),
                      from_.of(source, from), widest);
        } else {
            copy(to, from, source.bytes);
        }
    }

    void finish() override { stream_.synchronize(); }

private:
    // Uses the widest accesses for which both sides have the same alignment.
    void copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
        const auto apart =
            reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
        if (grid_.paper) {
            if (apart % 4 == 0) return launch<Plain, std::uint32_t, 1>(to, from, bytes);
            return launch<Plain, unsigned char, 1>(to, from, bytes);
        }
        if (apart % 16 == 0) return launch<Streaming, Sixteen, kTunedAhead>(to, from, bytes);
        if (apart % 8 == 0) {
            return launch<Streaming, unsigned long long, kTunedAhead>(to, from, bytes);
        }
        if (apart % 4 == 0) return launch<Streaming, std::uint32_t, kTunedAhead>(to, from, bytes);
        launch<Streaming, unsigned char, kTunedAhead>(to, from, bytes);
    }

    template <class Access, class Unit, std::size_t kAhead>
    void launch(std::byte* to, const std::byte* from, std::size_t bytes) const {
        const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % sizeof(Unit);
        const std::size_t head = std::min(bytes, past == 0 ? 0 : sizeof(Unit) - past);
        const std::size_t units = (bytes - head) / sizeof(Unit);
        const gpu::Shape most{.blocks = grid_.blocks, .threads = grid_.threads};
        gpu::launch(stream_, shape(units, most),
                    Copy<Access, Unit, kAhead>{to, from, bytes, head, units});
    }

    // Limits the blocks to the amount of work.
    [[nodiscard]] gpu::Shape shape(std::size_t units, gpu::Shape most) const {
        if (grid_.paper) return kPaper;
        const std::size_t needed = (units + most.threads - 1) / most.threads;
        return {.blocks = static_cast<unsigned>(std::clamp<std::size_t>(needed, 1, most.blocks)),
                .threads = most.threads};
    }

    gpu::Stream& stream_;
    const Grid grid_;
    const RunTable from_;
    const RunTable to_;
};

class Sm final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "sm",
            .description = "threads of a GPU load and store every byte (zero-copy)",
            .parameters = {side(), grid(), blocks()},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019, section 3.3 (zero-copy read and write)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.in_sets = true,
                .family = Family::kernel,
                .shares = {.host_memory = false, .cpus = false, .file_system = false},
                .alternative = {.executor = "copy-engine",
                                .question = "host memory by kernels in place or by copy engines",
                                .own = "in place",
                                .other = "copied",
                                .host_only = true},
                .calls = {{.text = "kernel that loads and stores"}},
                .library = {.lists = true, .settings = {"blocks"}}};
    }

    [[nodiscard]] bool serves(Layout::Kind) const override { return true; }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        if (!path.source.on_gpu() && !path.destination.on_gpu()) {
            return "a kernel copies on the GPU of one side, and neither side is on a GPU";
        }
        if (between_gpus(path) && !direct_access(path, machine)) {
            return path.source.place.text() + " and " + path.destination.place.text() +
                   " cannot access each other's memory directly";
        }
        const int gpu = worker(path, parameter(*this, transfer, machine, "side"));
        for (const Memory* memory : {&path.source, &path.destination}) {
            if (auto reason = reach_unsupported_reason(*memory, gpu, machine)) return reason;
        }
        return std::nullopt;
    }

    // The side is a choice only between GPUs: no CPU runs a kernel.
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine&) const override {
        if (between_gpus(transfer.path)) return {side(), grid()};
        if (by_whole_blocks(transfer)) return {grid(), blocks()};
        return {grid()};
    }

    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::device;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer,
                                         const Machine& machine) const override {
        return {worker(transfer.path, parameter(*this, transfer, machine, "side"))};
    }
    [[nodiscard]] std::optional<bool> peer_access(const Transfer& transfer,
                                                  const Machine&) const override {
        if (!between_gpus(transfer.path)) return std::nullopt;
        return true;
    }

    // The tables of a list are in the memory of the GPU that copies.
    [[nodiscard]] Requirements requirements(const Transfer& transfer,
                                            const Machine& machine) const override {
        Requirements needs = Executor::requirements(transfer, machine);
        const std::size_t bytes = table_bytes(transfer, 2);
        if (bytes > 0) needs.device_bytes[lanes(transfer, machine).front()] = bytes;
        return needs;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        return std::make_unique<SmExecution>(
            *lanes.front(), grid_of(transfer, machine, lanes.front()->device()),
            arrange(transfer, Side::source), arrange(transfer, Side::destination));
    }

private:
    static Parameter side() {
        return {.name = "side",
                .description =
                    "whose GPU runs the kernel: the destination's, which reads (pull), or the "
                    "source's, which writes (push)",
                .choices = {"pull", "push"}};
    }
    static Parameter grid() {
        return {.name = "grid",
                .description =
                    "accesses of 16 bytes, several under way in each thread of as many blocks as "
                    "the link needs (tuned), or of 4 bytes by 256 blocks of 256 threads, as in the "
                    "paper",
                .choices = {"tuned", "paper"}};
    }
    static Parameter blocks() {
        return {.name = "blocks",
                .description =
                    "how many blocks of 1,024 threads move the pieces of a list in the tuned grid: "
                    "one leaves the GPU to others, two fill a link",
                .kind = ParameterKind::ordered,
                .choices = {"1", "2", "4", "8", "16"}};
    }
    Grid grid_of(const Transfer& transfer, const Machine& machine, int gpu) const {
        if (parameter(*this, transfer, machine, "grid") == "paper") return {.paper = true};
        Grid grid = tuned(transfer.path, static_cast<unsigned>(gpu::device(gpu).multiprocessors));
        if (by_whole_blocks(transfer)) {
            const auto requested = std::stoul(parameter(*this, transfer, machine, "blocks"));
            grid.of_runs = {
                .blocks = static_cast<unsigned>(std::clamp(requested, 1UL, kMostBlocks)),
                .threads = transfer::kThreadsMovingRuns};
        }
        return grid;
    }
    // The GPU whose multiprocessors copy.
    static int worker(const Path& path, const std::string& side) {
        const bool source = path.source.on_gpu() && (side == "push" || !path.destination.on_gpu());
        return (source ? path.source : path.destination).place.index;
    }
};

const Registered<Executor, Sm> registered;

}  // namespace
}  // namespace waywiser
