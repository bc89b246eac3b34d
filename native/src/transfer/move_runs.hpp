// A kernel that moves runs of bytes of equal length: gathered, scattered, or from runs to runs.
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

// The widest access to whole units, of 16, 8, 4 or 1 bytes up to `widest`, that both sides allow.
inline std::size_t access_of(const Runs& to, const Runs& from, std::size_t widest = 16) {
    const std::size_t access = std::min(to.access(widest), from.access(widest));
    return access == 2 ? 1 : access;
}

// Divides whole numbers below 2^31 by one that is known at the launch, without a division: a
// multiplication, an addition and a shift (Granlund & Montgomery, PLDI 1994).
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

// The same for any numbers, by division.
class LongDivisor {
public:
    explicit LongDivisor(std::size_t value) : value_(value) {}
    [[nodiscard]] WAYWISER_BOTH std::size_t value() const { return value_; }
    [[nodiscard]] WAYWISER_BOTH std::size_t divide(std::size_t n) const { return n / value_; }

private:
    std::size_t value_;
};

// Of a block at most: with more, a thread has not the registers for what it has under way.
constexpr unsigned kThreadsMovingRuns = 1024;

// The units of all runs are numbered through: unit u is unit u % n of run u / n. A thread has
// kDepth of them under way, of several runs where these are short, so that the bytes under way
// depend on the number of threads alone. `Index` counts all units.
template <class Unit, class Index, class By>
struct MoveRuns {
    static constexpr unsigned kMostThreads = kThreadsMovingRuns;
    static constexpr unsigned kDepth = 8;

    // One side, with its planes ready to be divided by.
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
    By units;  // of a run
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
    // So many units are located at once: more would not leave the registers for what is under way.
    static constexpr unsigned kLocated = 4;

    // Where units are on one side. What kind of side it is is asked once, so that nothing stands
    // between the loads of a table, nor between those of the units.
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

    // So many units apart; where not all of them are there, the end is looked at.
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
    // An index that has passed the end still fits: a round is at most 2^28 units.
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

// Moves all runs with the widest accesses that their addresses and lengths allow, up to `widest`.
// One side may be a single run of as many bytes as all runs of the other have. `shape` has at most
// kThreadsMovingRuns threads in a block.
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
