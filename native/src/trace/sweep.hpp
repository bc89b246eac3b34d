// Which part of the transfers of one GPU no kernel covered.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace waywiser::trace {

// An interval of one GPU: a kernel, a transfer of a group, or a call that waits for one.
struct Interval {
    enum class What : std::uint8_t { Transfer, Set, Kernel, Collective, Call };
    std::uint64_t start = 0, end = 0;
    What what = What::Transfer;
    std::uint32_t group = 0;
};

// Times of one group in a part of the sweep.
struct GroupShare {
    std::uint32_t group = 0;
    std::uint64_t exposed = 0, alone = 0, during_collective = 0;
    // Without a kernel, a copy of the group ran, or a call waited for one and no other copy ran.
    std::uint64_t lost = 0;
};

class Sweep {
public:
    // Sums of unions, in nanoseconds.
    struct Totals {
        std::uint64_t kernel = 0, copy = 0, exposed = 0, collective = 0, lost = 0;
    };
    using OnShare = std::function<void(const GroupShare&)>;
    using OnExposed = std::function<void(std::uint64_t start, std::uint64_t end)>;

    void add(const Interval& interval) { intervals_.push_back(interval); }
    // Accounts all time before `time`. What is added later but began earlier is compared with the
    // kernels of the last seconds alone.
    void sweep_to(std::uint64_t time, const OnShare& on_share, const OnExposed& on_exposed);
    const Totals& totals() const { return totals_; }

private:
    using Span = std::pair<std::uint64_t, std::uint64_t>;
    struct Edge {
        std::uint64_t time = 0;
        std::int32_t step = 0;
        Interval::What what = Interval::What::Transfer;
        std::uint32_t group = 0;
    };
    struct Active {
        std::uint32_t group = 0;
        std::int32_t copies = 0, sets = 0, calls = 0;
    };

    std::vector<Edge> edges_before(std::uint64_t time);
    void apply(const Edge& edge);
    void account(std::uint64_t start, std::uint64_t end, const OnShare& on_share,
                 const OnExposed& on_exposed);
    void add_late(const Interval& interval, const OnShare& on_share, const OnExposed& on_exposed);
    void add_busy(std::uint64_t start, std::uint64_t end);
    std::uint64_t covered(std::uint64_t start, std::uint64_t end) const;
    void forget_busy(std::uint64_t before);

    std::vector<Interval> intervals_;
    std::vector<Active> active_;
    std::int32_t kernels_ = 0, collectives_ = 0;
    std::uint64_t swept_ = 0;
    std::vector<Span> busy_;  // merged, in order
    Totals totals_;
};

}  // namespace waywiser::trace
