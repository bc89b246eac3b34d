#include "measure/pattern.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

#include "executor/runs.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "host/parallel.hpp"
#include "measure/file_pattern.hpp"
#include "measure/pattern_stretch.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::measure {
namespace {

constexpr gpu::Shape kShape{.blocks = 256, .threads = 256};
constexpr std::size_t kThreads = std::size_t{kShape.blocks} * kShape.threads;
constexpr std::size_t kWarp = 32;

// The seed of the bytes between the runs.
Word seed_of_gaps(Word seed) { return ~seed; }

// The runs of a view, each a stretch of the pattern; or the gaps between and before them, as
// stretches of a pattern over all bytes.
struct Stretches {
    Runs runs;  // for gaps: in order of their addresses
    bool gaps = false;
    std::size_t extent = 0;  // of the pattern
    std::size_t first = 0;   // position in the pattern of the first byte

    [[nodiscard]] WAYWISER_BOTH std::size_t count() const { return runs.count + (gaps ? 1 : 0); }
    [[nodiscard]] WAYWISER_BOTH Stretch at(std::size_t n) const {
        if (!gaps) return {runs.at(n), runs.run, first + n * runs.run};
        std::byte* const from = n == 0 ? runs.data : runs.at(n - 1) + runs.run;
        std::byte* const to = n == runs.count ? runs.data + extent : runs.at(n);
        return {from, static_cast<std::size_t>(to - from),
                static_cast<std::size_t>(from - runs.data)};
    }
    // Number of threads per stretch: a warp, or more if there are few stretches.
    [[nodiscard]] std::size_t group() const {
        return std::bit_floor(
            std::clamp(kThreads / std::max<std::size_t>(count(), 1), kWarp, kThreads));
    }
};

struct Write {
    Stretches all;
    std::size_t group;
    Word seed, flip;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        const std::size_t lane = thread.index % group;
        for (auto n = thread.index / group; n < all.count(); n += thread.count / group) {
            write(all.at(n), seed, flip, lane, group);
        }
    }
};

struct Count {
    Stretches all;
    std::size_t group;
    Word seed;
    unsigned long long* count;
    unsigned long long* first;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        const std::size_t lane = thread.index % group;
        for (auto n = thread.index / group; n < all.count(); n += thread.count / group) {
            const Mismatch wrong = count_wrong(all.at(n), seed, lane, group);
            if (wrong.count == 0) continue;
            gpu::add(count, wrong.count);
            gpu::lower(first, wrong.first);
        }
    }
};

struct Reset {
    unsigned long long* count;
    unsigned long long* first;

    WAYWISER_ON_GPU void operator()(gpu::Thread) const {
        *count = 0;
        *first = ~0ULL;
    }
};

// The GPU that can access the bytes, or -1 if only the CPU can. Prefers the GPU if both can: it is
// faster, and on some systems CPUs read write-combined memory extremely slowly. Migrating memory is
// accessed from its place.
int reaching_gpu(const View& view, const Machine& machine) {
    if (view.memory->on_gpu()) return view.memory->place.index;
    const MemoryKind* kind = Memories::instance().find(view.memory->kind);
    if (kind == nullptr || !kind->page_locked() || machine.gpus.empty()) return -1;
    return machine.gpus.front().index;
}

// The address of the bytes for kernels of that GPU.
std::byte* address_for(const View& view, int gpu) {
    return view.memory->on_gpu() ? view.data : gpu::device_address(view.data, gpu);
}

Stretches stretches(const Runs& runs, bool gaps, const View& view, std::size_t at) {
    return {runs, gaps, gaps ? view.arrangement->extent : view.bytes, at};
}

// Calls visit(stretch) for every gap, in threads with about equal shares.
template <class Visit>
void gaps_on_cpus(const Stretches& all, const std::vector<int>& cpus, const Visit& visit) {
    const auto gap_at = [&](std::size_t offset) {
        const double part = static_cast<double>(offset) / static_cast<double>(all.extent);
        return offset == all.extent
                   ? all.count()
                   : static_cast<std::size_t>(part * static_cast<double>(all.count()));
    };
    host::parallel(all.extent, cpus, [&](std::size_t from, std::size_t to) {
        for (std::size_t n = gap_at(from); n < gap_at(to); ++n) visit(all.at(n));
    });
}

// The same for every run, which may be split into several pieces.
template <class Visit>
void runs_on_cpus(const Stretches& all, const std::vector<int>& cpus, const Visit& visit) {
    host::parallel(all.extent, cpus, [&](std::size_t from, std::size_t to) {
        while (from < to) {
            const Stretch whole = all.at(from / all.runs.run);
            const std::size_t skip = from - (whole.at - all.first);
            const std::size_t bytes = std::min(whole.bytes - skip, to - from);
            visit(Stretch{whole.data + skip, bytes, all.first + from});
            from += bytes;
        }
    });
}

template <class Visit>
void on_cpus(const View& view, bool gaps, const Machine& machine, std::size_t at,
             const Visit& visit) {
    const Stretches all = stretches(runs_of(view), gaps, view, at);
    const std::vector<int> cpus = machine.cpus(view.memory->place);
    gaps ? gaps_on_cpus(all, cpus, visit) : runs_on_cpus(all, cpus, visit);
}

void write_all(const View& view, bool gaps, Word seed, Word flip, const Machine& machine,
               std::size_t at = 0) {
    const int gpu = reaching_gpu(view, machine);
    if (gpu < 0) {
        on_cpus(view, gaps, machine, at,
                [&](const Stretch& stretch) { write(stretch, seed, flip, 0, 1); });
        return;
    }
    const gpu::Stream stream(gpu);
    const RunTable table(view.arrangement, gpu);
    const Stretches all = stretches(table.of(view, address_for(view, gpu)), gaps, view, at);
    gpu::launch(stream, kShape, Write{all, all.group(), seed, flip});
    stream.synchronize();
}

Mismatch check_on_gpu(const View& view, bool gaps, Word seed, int gpu, std::size_t at) {
    const gpu::Stream stream(gpu);
    const gpu::DeviceBuffer counters(gpu, 2 * sizeof(unsigned long long));
    const RunTable table(view.arrangement, gpu);
    auto* counts = reinterpret_cast<unsigned long long*>(counters.data());
    const Stretches all = stretches(table.of(view, address_for(view, gpu)), gaps, view, at);
    gpu::launch(stream, {}, Reset{counts, counts + 1});
    gpu::launch(stream, kShape, Count{all, all.group(), seed, counts, counts + 1});
    stream.synchronize();
    // All wrong by default: the copy of the result may be what fails.
    unsigned long long found[2] = {all.extent, 0};
    gpu::copy_sync(found, counters.data(), sizeof found, gpu);
    return {.count = found[0], .first = found[0] == 0 ? 0 : found[1]};
}

Mismatch check_on_cpu(const View& view, bool gaps, Word seed, const Machine& machine,
                      std::size_t at) {
    std::atomic<std::size_t> count = 0;
    std::atomic<std::size_t> first = std::numeric_limits<std::size_t>::max();
    on_cpus(view, gaps, machine, at, [&](const Stretch& stretch) {
        const Mismatch wrong = count_wrong(stretch, seed, 0, 1);
        if (wrong.count == 0) return;
        count += wrong.count;
        for (auto now = first.load();
             wrong.first < now && !first.compare_exchange_weak(now, wrong.first);) {
        }
    });
    return {.count = count, .first = count == 0 ? 0 : first.load()};
}

Mismatch check_all(const View& view, bool gaps, Word seed, const Machine& machine,
                   std::size_t at = 0) {
    const int gpu = reaching_gpu(view, machine);
    return gpu < 0 ? check_on_cpu(view, gaps, seed, machine, at)
                   : check_on_gpu(view, gaps, seed, gpu, at);
}

// The runs in the order of their addresses; those of a box already are.
Arrangement in_order(const Arrangement& arrangement) {
    Arrangement sorted = arrangement;
    std::ranges::sort(sorted.offsets);
    return sorted;
}

// The view with another arrangement of its bytes.
View arranged(View view, const Arrangement& arrangement) {
    view.arrangement = &arrangement;
    return view;
}

}  // namespace

void fill(const View& view, std::uint64_t seed, const Machine& machine, std::size_t at) {
    if (view.file >= 0) {
        write_file(view, seed, Content::pattern);
    } else {
        write_all(view, false, seed, 0, machine, at);
    }
}

void poison(const View& view, std::uint64_t seed, const Machine& machine, std::size_t at) {
    if (view.file >= 0) {
        write_file(view, seed, Content::complement);
        return;
    }
    write_all(view, false, seed, ~Word{0}, machine, at);
    if (view.arrangement == nullptr) return;
    const Arrangement sorted = in_order(*view.arrangement);
    write_all(arranged(view, sorted), true, seed_of_gaps(seed), 0, machine);
}

Mismatch check(const View& view, std::uint64_t seed, const Machine& machine, std::size_t at) {
    return view.file >= 0 ? check_file(view, seed) : check_all(view, false, seed, machine, at);
}

Mismatch check_gaps(const View& view, std::uint64_t seed, const Machine& machine) {
    if (view.arrangement == nullptr) return {};
    const Arrangement sorted = in_order(*view.arrangement);
    return check_all(arranged(view, sorted), true, seed_of_gaps(seed), machine);
}

}  // namespace waywiser::measure
