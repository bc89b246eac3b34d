// Managed memory that migrates because the destination touches it: the driver migrates pages on
// demand, at each page fault.

#include <algorithm>
#include <functional>
#include <memory>

#include "executor/cpu_mover.hpp"
#include "executor/migration.hpp"
#include "executor/touched_pages.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "host/pages.hpp"
#include "host/team.hpp"
#include "host/touch.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// As in the paper: a grid of 256 blocks of 256 threads, one warp per page.
constexpr gpu::Shape kPaperShape{.blocks = 256, .threads = 256};
constexpr std::size_t kWarp = 32;

// The parameters of touching, in bytes.
struct Pattern {
    std::size_t chunk, stride;
    [[nodiscard]] TouchedPages of(const View& view) const {
        return TouchedPages::of(view.data, view.bytes, host::page_bytes(), chunk, stride);
    }
};

struct TouchByWarps {
    std::byte* data;
    TouchedPages touches;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        if (thread.index % kWarp != 0) return;
        for (std::size_t n = thread.index / kWarp; n < touches.chunks();
             n += thread.count / kWarp) {
            for (std::size_t page = touches.first_page(n); page < touches.last_page(n); ++page) {
                gpu::touch(data + touches.offset(page));
            }
        }
    }
};

class GpuTouches final : public Execution {
public:
    GpuTouches(const Path& path, Pattern pattern, gpu::Stream& stream)
        : home_(path), pattern_(pattern), stream_(stream) {}

    void restore(const View& source, const View&) override { home_.restore(source); }
    void start(const View& source, const View&) override {
        gpu::launch(stream_, kPaperShape, TouchByWarps{source.data, pattern_.of(source)});
    }
    void finish() override { stream_.synchronize(); }

private:
    Home home_;
    Pattern pattern_;
    gpu::Stream& stream_;
};

// The starting thread touches the first share of the range, a team of the other threads the rest.
class CpuTouches final : public Execution {
public:
    CpuTouches(const Path& path, Pattern pattern, const std::vector<int>& cpus, std::size_t threads)
        : home_(path), pattern_(pattern), threads_(threads), team_(others(cpus, threads)) {}

    void restore(const View& source, const View&) override { home_.restore(source); }

    void wake() override {
        const std::function<void(std::size_t)> nothing = [](std::size_t) {};
        team_.start(nothing);
        team_.join();
    }

    void start(const View& source, const View&) override {
        const TouchedPages touches = pattern_.of(source);
        const auto share = [&](std::size_t thread) {
            const std::size_t end = touches.chunks() * (thread + 1) / threads_;
            for (std::size_t n = touches.chunks() * thread / threads_; n < end; ++n) {
                for (std::size_t page = touches.first_page(n); page < touches.last_page(n);
                     ++page) {
                    host::touch(source.data + touches.offset(page));
                }
            }
        };
        const std::function<void(std::size_t)> others_job = [&](std::size_t i) { share(i + 1); };
        team_.start(others_job);
        share(0);
        team_.join();
    }

private:
    static std::vector<std::vector<int>> others(const std::vector<int>& cpus, std::size_t threads) {
        std::vector<std::vector<int>> team;
        for (std::size_t i = 1; i < threads; ++i) team.push_back({cpus[i % cpus.size()]});
        return team;
    }

    Home home_;
    Pattern pattern_;
    std::size_t threads_;
    host::Team team_;
};

class PageFault final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "page-fault",
            .description =
                "the destination touches managed memory page by page, and the driver brings what "
                "faults",
            .parameters = {threads({"1"}), stride(), chunk()},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019, section 3.4 (demand migration); Pearson et "
                "al., NUMA-aware data-transfer measurements for Power/NVLink systems, 2018"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {.family = Family::unified_memory,
                .shares = {.file_system = false},
                .alternative = {.executor = "prefetch",
                                .question = "managed memory on demand or prefetched",
                                .own = "on demand",
                                .other = "prefetched"},
                .calls = {{.text = "first access (page faults)"}}};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Transfer& transfer, const Machine& machine) const override {
        const Path& path = transfer.path;
        if (auto reason = migration_unsupported_reason(path)) return reason;
        if (advice_of(path.source) == "preferred") {
            return "pages may stay at their preferred location when another side touches them";
        }
        if (path.destination.on_host() && machine.cpus(path.destination.place).empty()) {
            return "no CPU of " + path.destination.place.text() + " may be used";
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer& transfer,
                                                    const Machine& machine) const override {
        const Memory& destination = transfer.path.destination;
        if (!destination.on_host()) return {stride(), chunk()};
        return {threads(thread_choices(machine.cpus(destination.place).size())), stride(), chunk()};
    }

    [[nodiscard]] bool in_place(const Transfer&, const Machine&) const override { return true; }
    [[nodiscard]] bool repeatable(const Transfer&, const Machine&) const override { return false; }
    [[nodiscard]] TimingMode timing(const Transfer& transfer, const Machine&) const override {
        return transfer.path.destination.on_gpu() ? TimingMode::device : TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        if (!transfer.path.destination.on_gpu()) return {};
        return {transfer.path.destination.place.index};
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer,
                                                     const Machine& machine,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        const Path& path = transfer.path;
        require_migration(path);
        const Pattern pattern{.chunk = std::stoul(parameter(*this, transfer, machine, "chunk")),
                              .stride = std::stoul(parameter(*this, transfer, machine, "stride"))};
        if (path.destination.on_gpu()) {
            return std::make_unique<GpuTouches>(path, pattern, *lanes.front());
        }
        return std::make_unique<CpuTouches>(
            path, pattern, machine.cpus(path.destination.place),
            std::stoul(parameter(*this, transfer, machine, "threads")));
    }

private:
    static Parameter threads(std::vector<std::string> choices) {
        return {.name = "threads",
                .description =
                    "how many pinned threads of the destination's node share the range, from 1 to "
                    "all",
                .kind = ParameterKind::ordered,
                .choices = std::move(choices)};
    }
    static Parameter stride() {
        return {
            .name = "stride",
            .description =
                "bytes from the start of a touched chunk to the next, in whole pages; where some "
                "are skipped the driver decides how much moves, and only a time is reported, no "
                "bandwidth",
            .kind = ParameterKind::ordered,
            .choices = page_choices({std::size_t{64} << 10, std::size_t{2} << 20})};
    }
    static Parameter chunk() {
        return {.name = "chunk",
                .description =
                    "bytes that one warp or thread touches, page by page, before it goes on by the "
                    "stride, which is at least as long",
                .kind = ParameterKind::ordered,
                .choices = page_choices({std::size_t{64} << 10})};
    }
    // One page, and larger sizes.
    static std::vector<std::string> page_choices(std::initializer_list<std::size_t> longer) {
        std::vector<std::string> choices{std::to_string(host::page_bytes())};
        for (const std::size_t bytes : longer) {
            if (bytes > host::page_bytes()) choices.push_back(std::to_string(bytes));
        }
        return choices;
    }
};

const Registered<Executor, PageFault> registered;

}  // namespace
}  // namespace waywiser
