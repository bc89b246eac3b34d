// A kernel that moves runs of bytes of equal length: gather, scatter, or runs to runs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"

#if defined(__CUDACC__)
#define WAYWISER_UNROLL _Pragma("unroll")
#else
#define WAYWISER_UNROLL
#endif

namespace waywiser::transfer {

// The runs of one side as a kernel or a CPU accesses them.
struct Runs {
    std::byte* data = nullptr;
    std::size_t run = 0;    // contiguous bytes
    std::size_t count = 0;  // of runs
    // Bytes from run to run if there is no table; a box has `height` runs per plane.
    std::size_t pitch = 0;
    std::size_t height = 0;  // 0: no planes
    std::size_t plane = 0;
    const std::size_t* offsets = nullptr;
    std::size_t bits = 0;  // OR of all offsets and lengths, for their alignment

    WAYWISER_BOTH std::byte* at(std::size_t n) const {
        if (offsets != nullptr) return data + offsets[n];
        if (height == 0) return data + n * pitch;
        return data + n / height * plane + n % height * pitch;
    }

    // A single contiguous run.
    static Runs together(std::byte* data, std::size_t bytes) {
        return {.data = data, .run = bytes, .count = 1, .pitch = bytes, .bits = bytes};
    }
    // A single run, cut into runs of `length`.
    [[nodiscard]] Runs cut(std::size_t length) const {
        return {.data = data,
                .run = length,
                .count = length == 0 ? 0 : run / length,
                .pitch = length,
                .bits = length};
    }
    // `some` runs from `first` on; not of a side with planes.
    [[nodiscard]] Runs part(std::size_t first, std::size_t some) const {
        Runs runs = *this;
        runs.count = some;
        if (offsets != nullptr) {
            runs.offsets += first;
        } else {
            runs.data += first * pitch;
        }
        return runs;
    }
    // The largest power of two, up to `widest`, to which the start and end of every run are
    // aligned.
    [[nodiscard]] std::size_t access(std::size_t widest) const {
        const std::size_t all = bits | reinterpret_cast<std::uintptr_t>(data) | widest;
        return std::size_t{1} << std::countr_zero(all);
    }
};

// The widest access, of 16, 8, 4 or 1 bytes up to `widest`, for which both sides are aligned.
inline std::size_t access_of(const Runs& to, const Runs& from, std::size_t widest = 16) {
    const std::size_t access = std::min(to.access(widest), from.access(widest));
    return access == 2 ? 1 : access;
}

// Divides integers below 2^31 by a value known at launch, without a division: a multiplication, an
// addition and a shift (Granlund & Montgomery, PLDI 1994).
class Divisor {
public:
    explicit Divisor(std::uint32_t value)
        : value_(value),
          shift_(static_cast<std::uint32_t>(std::bit_width(value - 1))),
          factor_(static_cast<std::uint32_t>(
              ((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift_) - value)) / value + 1)) {}

    [[nodiscard]] WAYWISER_BOTH std::uint32_t value() const { return value_; }
    [[nodiscard]] WAYWISER_BOTH std::uint32_t divide(std::uint32_t n) const {
        const auto high = static_cast<std::uint32_t>((std::uint64_t{n} * factor_) >> 32);
        return (high + n) >> shift_;
    }

private:
    std::uint32_t value_;
    std::uint32_t shift_;
    std::uint32_t factor_;
};

// The same for any integers, by division.
class LongDivisor {
public:
    explicit LongDivisor(std::size_t value) : value_(value) {}
    [[nodiscard]] WAYWISER_BOTH std::size_t value() const { return value_; }
    [[nodiscard]] WAYWISER_BOTH std::size_t divide(std::size_t n) const { return n / value_; }

private:
    std::size_t value_;
};

// Maximum threads of a block: with more, a thread has too few registers for its loads in flight.
constexpr unsigned kThreadsMovingRuns = 1024;

// The units of all runs are numbered consecutively: unit u is unit u % n of run u / n. Each thread
// has kDepth of them in flight, from several runs if these are short, so that the bytes in flight
// depend only on the number of threads. `Index` counts all units.
template <class Unit, class Index, class By>
struct MoveRuns {
    static constexpr unsigned kMostThreads = kThreadsMovingRuns;
    static constexpr unsigned kDepth = 8;

    // One side, with a divisor for its planes.
    struct Side {
        explicit Side(const Runs& runs)
            : data(runs.data),
              offsets(runs.offsets),
              pitch(runs.pitch),
              plane(runs.plane),
              planes(runs.height != 0),
              height(static_cast<Index>(std::max<std::size_t>(runs.height, 1))) {}

        std::byte* data;
        const std::size_t* offsets;
        std::size_t pitch, plane;
        bool planes;
        By height;
    };

    Side to, from;
    By units;  // units per run
    Index total;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        const auto apart = static_cast<Index>(thread.count);
        auto first = static_cast<Index>(thread.index);
        for (; first + (kDepth - 1) * apart < total; first += kDepth * apart) {
            move_round<true>(first, apart);
        }
        if (first < total) move_round<false>(first, apart);
    }

private:
    // Units located at once: more would need the registers of loads in flight.
    static constexpr unsigned kLocated = 4;

    // Computes the addresses of units on one side. The kind of side is tested once, so that nothing
    // separates the loads of a table, nor those of the units.
    template <bool kAll>
    WAYWISER_ON_GPU void locate(const Side& side, Index first, Index apart,
                                std::byte* (&units_at)[kLocated]) const {
        const auto each = [&](const auto& start_of) {
            WAYWISER_UNROLL for (unsigned k = 0; k < kLocated; ++k) {
                const Index n = first + k * apart;
                const Index run = units.divide(n);
                const Index within = n - run * units.value();
                units_at[k] = side.data + (kAll || n < total ? start_of(run) : 0) +
                              static_cast<std::size_t>(within) * sizeof(Unit);
            }
        };
        if (side.offsets != nullptr) {
            each([&](Index run) { return side.offsets[run]; });
        } else if (!side.planes) {
            each([&](Index run) { return run * side.pitch; });
        } else {
            each([&](Index run) {
                const Index plane = side.height.divide(run);
                return plane * side.plane + (run - plane * side.height.value()) * side.pitch;
            });
        }
    }

    // Moves kDepth units, `apart` units from each other. Tests for the end unless kAll.
    template <bool kAll>
    WAYWISER_ON_GPU void move_round(Index first, Index apart) const {
        std::byte* units_at[kLocated] = {};
        Unit held[kDepth] = {};
        WAYWISER_UNROLL for (unsigned k = 0; k < kDepth; k += kLocated) {
            locate<kAll>(from, first + k * apart, apart, units_at);
            WAYWISER_UNROLL for (unsigned i = 0; i < kLocated; ++i) {
                if (kAll || first + (k + i) * apart < total) {
                    held[k + i] = *reinterpret_cast<const Unit*>(units_at[i]);
                }
            }
        }
        WAYWISER_UNROLL for (unsigned k = 0; k < kDepth; k += kLocated) {
            locate<kAll>(to, first + k * apart, apart, units_at);
            WAYWISER_UNROLL for (unsigned i = 0; i < kLocated; ++i) {
                if (kAll || first + (k + i) * apart < total) {
                    *reinterpret_cast<Unit*>(units_at[i]) = held[k + i];
                }
            }
        }
    }
};

namespace detail {

template <class Unit>
void move_runs_by(const gpu::Stream& stream, gpu::Shape shape, const Runs& to, const Runs& from) {
    const std::size_t units = from.run / sizeof(Unit);
    const std::size_t total = from.count * units;
    // An index beyond the end still fits: a round is at most 2^28 units.
    constexpr std::size_t kFewUnits = std::size_t{1} << 30;
    if (total <= kFewUnits) {
        using Kernel = MoveRuns<Unit, std::uint32_t, Divisor>;
        using Side = Kernel::Side;
        gpu::launch(stream, shape,
                    Kernel{Side(to), Side(from), Divisor(static_cast<std::uint32_t>(units)),
                           static_cast<std::uint32_t>(total)});
    } else {
        using Kernel = MoveRuns<Unit, std::size_t, LongDivisor>;
        using Side = Kernel::Side;
        gpu::launch(stream, shape, Kernel{Side(to), Side(from), LongDivisor(units), total});
    }
}

}  // namespace detail

// Moves all runs with the widest accesses that their alignment allows, up to `widest`. One side may
// be a single run with the bytes of all runs of the other. `shape` has at most kThreadsMovingRuns
// threads per block.
inline void move_runs(const gpu::Stream& stream, gpu::Shape shape, Runs to, Runs from,
                      std::size_t widest = 16) {
    if (to.run != from.run) {
        if (from.count == 1)
            from = from.cut(to.run);
        else
            to = to.cut(from.run);
    }
    if (from.count == 0 || from.run == 0) return;
    switch (access_of(to, from, widest)) {
        case 16: return detail::move_runs_by<gpu::Quad>(stream, shape, to, from);
        case 8: return detail::move_runs_by<std::uint64_t>(stream, shape, to, from);
        case 4: return detail::move_runs_by<std::uint32_t>(stream, shape, to, from);
        default: return detail::move_runs_by<std::uint8_t>(stream, shape, to, from);
    }
}

}  // namespace waywiser::transfer
