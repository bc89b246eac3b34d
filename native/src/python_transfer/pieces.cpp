#include "pieces.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>

#include "errors.hpp"

namespace waywiser::python {
namespace {

// One dimension of both arrays; strides in bytes.
struct Dimension {
    std::int64_t count = 0;
    std::int64_t to = 0;
    std::int64_t from = 0;
};

struct Nest {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t run = 0;                // contiguous bytes on both sides
    std::vector<Dimension> dimensions;  // around the run, the outermost first
};

// Dimensions of more than one element, in descending order of the destination's strides, so that
// neighbours in memory are neighbours here, for any order of the axes.
Nest nest_of(const Operand& destination, const Operand& source) {
    Nest nest{.to = destination.data, .from = source.data, .run = destination.item};
    for (int i = 0; i < destination.dimensions; ++i) {
        const auto at = static_cast<std::size_t>(i);
        Dimension one{destination.shape[at], destination.strides[at], source.strides[at]};
        if (one.count == 1) continue;
        if (one.to < 0) {  // start at its other end
            nest.to += one.to * (one.count - 1);
            nest.from += one.from * (one.count - 1);
            one.to = -one.to;
            one.from = -one.from;
        }
        nest.dimensions.push_back(one);
    }
    std::ranges::stable_sort(nest.dimensions,
                             [](const Dimension& a, const Dimension& b) { return a.to > b.to; });
    return nest;
}

void check_destination(const Nest& nest, const char* call) {
    auto extent = static_cast<std::int64_t>(nest.run);
    for (auto one = nest.dimensions.rbegin(); one != nest.dimensions.rend(); ++one) {
        if (one->to < extent) {
            raise(Failure::invalid_transfer,
                  {.what = "elements of the destination share memory: it is a broadcast or an "
                           "overlapping view",
                   .where = call,
                   .remedy = "copy into an array that owns its memory"});
        }
        extent += one->to * (one->count - 1);
    }
}

// Joins dimensions that are contiguous on both sides, and adds those of the run to it.
void merge(Nest& nest) {
    auto& dimensions = nest.dimensions;
    for (std::size_t i = dimensions.size(); i-- > 1;) {
        Dimension& outer = dimensions[i - 1];
        const Dimension inner = dimensions[i];
        if (outer.to == inner.to * inner.count && outer.from == inner.from * inner.count) {
            outer = {outer.count * inner.count, inner.to, inner.from};
            dimensions.erase(dimensions.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    const auto run = static_cast<std::int64_t>(nest.run);
    if (!dimensions.empty() && dimensions.back().to == run && dimensions.back().from == run) {
        nest.run *= static_cast<std::size_t>(dimensions.back().count);
        dimensions.pop_back();
    }
}

void walk(const Nest& nest, std::size_t depth, std::byte* to, const std::byte* from,
          PieceList& pieces) {
    if (depth == nest.dimensions.size()) return pieces.add(to, from, nest.run);
    const Dimension& one = nest.dimensions[depth];
    for (std::int64_t i = 0; i < one.count; ++i) {
        walk(nest, depth + 1, to + i * one.to, from + i * one.from, pieces);
    }
}

using Range = std::pair<std::uintptr_t, std::uintptr_t>;  // [first, second)

template <class Pointers>
std::vector<Range> sorted_ranges(const Pointers& starts, const std::vector<std::size_t>& sizes) {
    std::vector<Range> ranges;
    ranges.reserve(starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const auto start = reinterpret_cast<std::uintptr_t>(starts[i]);
        if (sizes[i] > 0) ranges.emplace_back(start, start + sizes[i]);
    }
    if (!std::ranges::is_sorted(ranges)) std::ranges::sort(ranges);
    return ranges;
}

// From the lowest to the highest byte.
template <class Pointers>
Range hull(const Pointers& starts, const std::vector<std::size_t>& sizes) {
    Range all{UINTPTR_MAX, 0};
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const auto start = reinterpret_cast<std::uintptr_t>(starts[i]);
        all = {std::min(all.first, start), std::max(all.second, start + sizes[i])};
    }
    return all;
}

[[noreturn]] void reject_overlap(const char* call) {
    raise(Failure::invalid_transfer, {.what = "source and destination share memory",
                                      .where = call,
                                      .remedy = "copy through a third array"});
}

}  // namespace

void check_compatible(const Operand& destination, const Operand& source, const char* call) {
    if (destination.type != source.type || destination.item != source.item) {
        raise(Failure::invalid_operand,
              {.what = "the dtypes differ: " + text(source.type) + " to " + text(destination.type),
               .where = call,
               .remedy = remedy_for(source.type, source.item, destination.type, destination.item)});
    }
    const auto count = static_cast<std::size_t>(destination.dimensions);
    if (destination.dimensions == source.dimensions &&
        std::equal(source.shape.begin(), source.shape.begin() + count, destination.shape.begin())) {
        return;
    }
    raise(Failure::invalid_transfer,
          {.what = "the shapes differ: " + text(source) + " to " + text(destination),
           .where = call,
           .remedy = "reshape or slice one side; nothing is broadcast"});
}

bool has_too_many_pieces(const Operand& destination, const Operand& source, const char* call) {
    if (destination.bytes == 0 || (destination.contiguous && source.contiguous)) return false;
    Nest nest = nest_of(destination, source);
    check_destination(nest, call);
    merge(nest);
    return destination.bytes / nest.run > kMostPieces;
}

void add_pieces(const Operand& destination, const Operand& source, const char* call,
                PieceList& pieces) {
    if (destination.bytes == 0) return;
    if (destination.contiguous && source.contiguous) {
        return pieces.add(destination.data, source.data, destination.bytes);
    }
    Nest nest = nest_of(destination, source);
    check_destination(nest, call);
    merge(nest);
    const std::size_t count = destination.bytes / nest.run;
    if (count > kMostPieces - pieces.count()) {
        raise(Failure::unsupported,
              {.what = "the operands have only " + std::to_string(nest.run) +
                       " contiguous bytes in common: " + std::to_string(count) + " pieces, " +
                       "more than " + std::to_string(kMostPieces),
               .where = call,
               .remedy = "make both sides contiguous first"});
    }
    pieces.make_room(count);
    walk(nest, 0, nest.to, nest.from, pieces);
}

void check_overlap(const PieceList& pieces, const char* call) {
    if (pieces.count() == 1) {
        const auto to = reinterpret_cast<std::uintptr_t>(pieces.to[0]);
        const auto from = reinterpret_cast<std::uintptr_t>(pieces.from[0]);
        if (to < from + pieces.bytes && from < to + pieces.bytes) {
            reject_overlap(call);
        }
        return;
    }
    const std::vector<Range> to = sorted_ranges(pieces.to, pieces.sizes);
    for (std::size_t i = 1; i < to.size(); ++i) {
        if (to[i].first < to[i - 1].second) {
            raise(Failure::invalid_transfer, {.what = "two destinations share memory",
                                              .where = call,
                                              .remedy = "give each destination once"});
        }
    }
    const Range sources = hull(pieces.from, pieces.sizes);
    if (to.empty() || to.back().second <= sources.first || sources.second <= to.front().first) {
        return;  // most arrays do not overlap, and sorting long lists is slow
    }
    const std::vector<Range> from = sorted_ranges(pieces.from, pieces.sizes);
    // Destinations do not overlap: for each source find the first that ends after its start.
    std::size_t first = 0;
    for (const Range& source : from) {
        while (first < to.size() && to[first].second <= source.first) ++first;
        if (first < to.size() && to[first].first < source.second) {
            reject_overlap(call);
        }
    }
}

bool is_identity(const PieceList& pieces) {
    return std::equal(pieces.to.begin(), pieces.to.end(), pieces.from.begin());
}

}  // namespace waywiser::python
