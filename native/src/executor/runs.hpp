// Kernels that move runs of bytes: gathered, scattered, or from runs to runs.
//
// A side is an arrangement (a box by its formula, a list by a table of offsets in the memory of the
// device that moves it), or lies together; then it is cut into the runs of the other.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {

// Where the runs of one side lie, as a kernel or a CPU sees it.
struct Runs {
    std::byte* data = nullptr;
    std::size_t run = 0;    // bytes that lie together
    std::size_t count = 0;  // of runs
    // From run to run, where there is no table; of a box, `height` runs to a plane.
    std::size_t pitch = 0;
    std::size_t height = 0;  // 0: no planes
    std::size_t plane = 0;
    const std::size_t* offsets = nullptr;
    std::size_t bits = 0;  // of all offsets and lengths: what they are multiples of

    WAYWISER_BOTH std::byte* at(std::size_t n) const {
        if (offsets != nullptr) return data + offsets[n];
        if (height == 0) return data + n * pitch;
        return data + n / height * plane + n % height * pitch;
    }

    // The same number of bytes in one piece.
    static Runs together(std::byte* data, std::size_t bytes) {
        return {.data = data, .run = bytes, .count = 1, .pitch = bytes, .bits = bytes};
    }
    // Those of a view, for a CPU.
    static Runs of(const View& view) {
        return of(view, view.data,
                  view.arrangement == nullptr ? nullptr : view.arrangement->offsets.data());
    }
    // The same for who finds the first byte at `data`, and the offsets of a list at `offsets`.
    static Runs of(const View& view, std::byte* data, const std::size_t* offsets) {
        if (view.arrangement == nullptr) return together(data, view.bytes);
        const Arrangement& lie = *view.arrangement;
        Runs runs{.data = data, .run = lie.run, .count = lie.count, .pitch = lie.run};
        runs.bits = lie.run;
        if (lie.kind == Layout::Kind::box) {
            runs.pitch = lie.pitch;
            runs.height = lie.height;
            runs.plane = lie.plane;
            runs.bits |= lie.pitch | lie.plane;
        } else if (lie.kind == Layout::Kind::list) {
            runs.offsets = offsets;
        }
        return runs;
    }
    // One piece as if it were cut into runs.
    [[nodiscard]] Runs cut(std::size_t length) const {
        return {.data = data,
                .run = length,
                .count = length == 0 ? 0 : run / length,
                .pitch = length,
                .bits = length};
    }
    // The largest power of two, up to `widest`, at whose multiples every run starts and ends.
    [[nodiscard]] std::size_t access(std::size_t widest) const {
        const std::size_t all = bits | reinterpret_cast<std::uintptr_t>(data) | widest;
        return std::size_t{1} << std::countr_zero(all);
    }
};

// The runs of views for kernels of one device. The offsets of a list go to the device at the first
// view of an arrangement, which allocates and copies and so must not happen behind a closed gate,
// and stay there: programs with tables of blocks have them on the GPU. An arrangement has to live
// as long as what was made of it.
class RunTables {
public:
    explicit RunTables(int device) : device_(device) {}

    // `data`: where a kernel of the device finds the first byte of the view.
    Runs of(const View& view, std::byte* data) {
        if (view.arrangement == nullptr || view.arrangement->kind != Layout::Kind::list) {
            return Runs::of(view, data, nullptr);
        }
        const Table& table = table_of(*view.arrangement);
        Runs runs =
            Runs::of(view, data, reinterpret_cast<const std::size_t*>(table.offsets.data()));
        runs.bits |= table.bits;
        return runs;
    }

private:
    struct Table {
        const Arrangement* arrangement;
        const std::size_t* made_of;
        std::size_t count;
        std::size_t bits = 0;
        gpu::DeviceBuffer offsets;
    };

    const Table& table_of(const Arrangement& lie) {
        for (const Table& table : tables_) {
            if (table.arrangement == &lie && table.made_of == lie.offsets.data() &&
                table.count == lie.count) {
                return table;
            }
        }
        const std::size_t bytes = lie.offsets.size() * sizeof(std::size_t);
        Table table{&lie, lie.offsets.data(), lie.count, 0, gpu::DeviceBuffer(device_, bytes)};
        for (const std::size_t offset : lie.offsets) table.bits |= offset;
        gpu::copy_sync(table.offsets.data(), lie.offsets.data(), bytes, device_);
        tables_.push_back(std::move(table));
        return tables_.back();
    }

    int device_;
    std::list<Table> tables_;
};

// Some neighbouring threads take a run: a warp, fewer where it is shorter than that, several times
// where it is long. Each thread has several accesses under way.
template <class Unit>
struct MoveRuns {
    static constexpr std::size_t kDepth = 4;

    Runs to, from;
    std::size_t units = 0;  // of a run
    std::size_t group = 1;  // threads of a run, a power of two up to a warp
    std::size_t turns = 0;  // that such a group takes for a run

    WAYWISER_DEVICE void operator()(gpu::Thread thread) const {
        const std::size_t lane = thread.index % group;
        const std::size_t groups = thread.count / group;
        for (std::size_t turn = thread.index / group; turn < from.count * turns; turn += groups) {
            const std::size_t n = turn / turns;
            const std::size_t first = (turn - n * turns) * group * kDepth + lane;
            auto* target = reinterpret_cast<Unit*>(to.at(n));
            const auto* origin = reinterpret_cast<const Unit*>(from.at(n));
            Unit held[kDepth] = {};
            for (std::size_t k = 0; k < kDepth; ++k) {
                if (first + k * group < units) held[k] = origin[first + k * group];
            }
            for (std::size_t k = 0; k < kDepth; ++k) {
                if (first + k * group < units) target[first + k * group] = held[k];
            }
        }
    }
};

namespace detail {

template <class Unit>
void move_runs_by(const gpu::Stream& stream, gpu::Shape shape, const Runs& to, const Runs& from) {
    constexpr std::size_t kWarp = 32;
    const std::size_t units = from.run / sizeof(Unit);
    const std::size_t group = std::min(kWarp, std::bit_ceil(units));
    const std::size_t in_a_turn = group * MoveRuns<Unit>::kDepth;
    gpu::launch(stream, shape,
                MoveRuns<Unit>{to, from, units, group, (units + in_a_turn - 1) / in_a_turn});
}

}  // namespace detail

// Moves all runs by a kernel with the widest accesses that their addresses and lengths allow, of
// 16, 8, 4 or 1 bytes, up to `widest`. `shape` has whole warps in a block.
inline void move_runs(const gpu::Stream& stream, gpu::Shape shape, Runs to, Runs from,
                      std::size_t widest = 16) {
    if (to.run != from.run) {
        if (from.count == 1)
            from = from.cut(to.run);
        else
            to = to.cut(from.run);
    }
    const std::size_t access = std::min(to.access(widest), from.access(widest));
    if (access == 16) {
        detail::move_runs_by<gpu::Quad>(stream, shape, to, from);
    } else if (access == 8) {
        detail::move_runs_by<std::uint64_t>(stream, shape, to, from);
    } else if (access == 4) {
        detail::move_runs_by<std::uint32_t>(stream, shape, to, from);
    } else {
        detail::move_runs_by<std::uint8_t>(stream, shape, to, from);
    }
}

}  // namespace waywiser
