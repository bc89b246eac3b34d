// Cells linked into one cycle in a shuffled order, for chases of dependent loads that cannot be
// predicted. CPUs and GPUs build and follow the same cycle.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/launch.hpp"

namespace waywiser {

struct Cell {
    const Cell* next;
};

// A shuffled order of `cells` cells as a function, so that any part of a cycle can be linked
// independently. A bijection of the next power of two (multiply by odd numbers, fold high bits into
// low ones), iterated until the value is below `cells` (Black & Rogaway, CT-RSA 2002: cycle
// walking).
class Order {
public:
    explicit Order(std::size_t cells) : cells_(cells) {
        while ((std::uint64_t{1} << bits_) < cells) ++bits_;
    }
    [[nodiscard]] WAYWISER_BOTH std::size_t cells() const { return cells_; }
    // The position of the i-th cell; i below `cells`.
    [[nodiscard]] WAYWISER_BOTH std::size_t operator()(std::size_t i) const {
        std::uint64_t x = i;
        do {
            x = mixed(x);
        } while (x >= cells_);
        return static_cast<std::size_t>(x);
    }

private:
    [[nodiscard]] WAYWISER_BOTH std::uint64_t mixed(std::uint64_t x) const {
        const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
        const unsigned fold = (bits_ + 1) / 2;
        x = (x * 0xBF58476D1CE4E5B9ULL + 0x9E3779B97F4A7C15ULL) & mask;
        x ^= x >> fold;
        x = (x * 0x94D049BB133111EBULL + 0xD1B54A32D192ED03ULL) & mask;
        x ^= x >> fold;
        x = (x * 0xD6E8FEB86659FD93ULL + 0x8CB92BA72F3D8DD7ULL) & mask;
        return x ^ (x >> fold);
    }

    std::size_t cells_;
    unsigned bits_ = 1;
};

// A range of memory as cells at a fixed distance.
struct Cycle {
    std::byte* data = nullptr;
    std::size_t apart = 0;
    Order order;

    WAYWISER_BOTH Cell* cell(std::size_t i) const {
        return reinterpret_cast<Cell*>(data + order(i) * apart);
    }
    // Links the i-th cell to the next, and the last to the first.
    WAYWISER_BOTH void link(std::size_t i) const {
        cell(i)->next = cell(i + 1 == order.cells() ? 0 : i + 1);
    }
};

// The cell after a number of links; it depends on every load.
WAYWISER_BOTH inline const Cell* follow(const Cell* at, std::size_t links) {
    for (std::size_t i = 0; i < links; ++i) at = at->next;
    return at;
}

}  // namespace waywiser
