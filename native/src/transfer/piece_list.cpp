#include "transfer/piece_list.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "transfer/side.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::uintptr_t kLastAddress = std::numeric_limits<std::uintptr_t>::max();

void check_array(const Blocks& side, std::size_t block, const char* name) {
    if (block > side.stride && side.blocks > 1) {
        throw InvalidCopy(std::string("copy_blocks: a block of ") + std::to_string(block) +
                          " bytes is longer than the stride of the " + name + ", " +
                          std::to_string(side.stride) +
                          " bytes: pass a stride of at least a block");
    }
    const auto start = reinterpret_cast<std::uintptr_t>(side.data);
    if (side.blocks != 0 && (side.stride > (kLastAddress - start) / side.blocks ||
                             block > kLastAddress - start - side.stride * (side.blocks - 1))) {
        throw InvalidCopy(std::string("copy_blocks: the ") + name +
                          " goes past the end of the address space: check its stride of " +
                          std::to_string(side.stride) + " bytes and its " +
                          std::to_string(side.blocks) + " blocks");
    }
}

// The passes over an index have no branch for each entry, so that the compiler can vectorize them.
// They end after a part that decides the result.
constexpr std::size_t kPart = 1024;

std::uint64_t word(std::int64_t entry) { return static_cast<std::uint64_t>(entry); }

constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

// The sign of the result is that of a negative entry, or of one that is greater than `last`.
[[gnu::always_inline]] inline std::uint64_t outside_of(std::span<const std::int64_t> index,
                                                       std::uint64_t last) {
    std::uint64_t outside = 0;
    for (const std::int64_t entry : index) outside |= word(entry) | (last - word(entry));
    return outside;
}

// Whether each entry is `step` more than the one before it.
[[gnu::always_inline]] inline bool goes_by(std::span<const std::int64_t> index,
                                           std::uint64_t step) {
    for (std::size_t first = 1; first < index.size(); first += kPart) {
        const std::size_t last = std::min(index.size(), first + kPart);
        std::uint64_t differ = 0;
        for (std::size_t i = first; i < last; ++i) {
            differ |= (word(index[i]) - word(index[i - 1])) ^ step;
        }
        if (differ != 0) return false;
    }
    return true;
}

// The same with vectors of twice the length, where the CPU has them: half of the time.
#if defined(__x86_64__)
bool has_wide() {
    static const bool has = __builtin_cpu_supports("avx2") != 0;
    return has;
}
[[gnu::target("avx2")]] std::uint64_t outside_of_wide(std::span<const std::int64_t> index,
                                                      std::uint64_t last) {
    return outside_of(index, last);
}
[[gnu::target("avx2")]] bool goes_by_wide(std::span<const std::int64_t> index, std::uint64_t step) {
    return goes_by(index, step);
}
#else
bool has_wide() { return false; }
std::uint64_t outside_of_wide(std::span<const std::int64_t> index, std::uint64_t last) {
    return outside_of(index, last);
}
bool goes_by_wide(std::span<const std::int64_t> index, std::uint64_t step) {
    return goes_by(index, step);
}
#endif

// Whether each entry, all of which are in range, is greater than the one before it.
bool ascends(std::span<const std::int64_t> index) {
    for (std::size_t first = 1; first < index.size(); first += kPart) {
        const std::size_t last = std::min(index.size(), first + kPart);
        std::uint64_t differences = 0;
        for (std::size_t i = first; i < last; ++i) {
            differences |= word(index[i]) - word(index[i - 1]) - 1;
        }
        if ((differences & kSign) != 0) return false;
    }
    return true;
}

bool steps_by(std::span<const std::int64_t> index, std::uint64_t step) {
    return has_wide() ? goes_by_wide(index, step) : goes_by(index, step);
}

// Whether all entries are known to be in range. False for more than 2^63 blocks. `step`: of all of
// them; 0 if there is none.
bool all_inside(std::span<const std::int64_t> index, std::size_t blocks, std::size_t step) {
    if (blocks == 0) return index.empty();
    const std::uint64_t last = blocks - 1;
    if (step != 0) {
        const std::uint64_t first = word(index.front());
        return first <= last && (last - first) / step >= index.size() - 1;
    }
    const std::uint64_t outside =
        has_wide() ? outside_of_wide(index, last) : outside_of(index, last);
    return (outside & kSign) == 0;
}

// Checks the range of the first `count` entries, and keeps what is known of them. Each entry is
// read from memory once.
void check_entries(Blocks& side, std::size_t count, const char* name) {
    if (count <= side.known) return;
    const bool is_first = side.known == 0;
    // With the last one that is known: they are compared with it.
    const auto added =
        side.index.subspan(is_first ? 0 : side.known - 1, count - side.known + (is_first ? 0 : 1));
    if (side.known <= 1) {
        side.step = step_of(added);
    } else if (side.step != 0 && !steps_by(added, side.step)) {
        side.step = 0;
    }
    if (!all_inside(added, side.blocks, side.step)) {
        const auto outside = [&](std::int64_t entry) { return word(entry) >= side.blocks; };
        const auto found = std::ranges::find_if(added, outside);
        if (found != added.end()) {
            throw InvalidCopy(std::string("copy_blocks: index ") + std::to_string(*found) +
                              " of the " + name + " is out of range: it has " +
                              std::to_string(side.blocks) + " blocks");
        }
    }
    side.ascending = side.step != 0 || ((is_first || side.ascending) && ascends(added));
    side.known = count;
}

// The memory of the array, from its first block to the end of its last.
Extent extent_of(const Blocks& side, std::size_t block) {
    if (side.blocks == 0) return {};
    return {side.data, side.stride * (side.blocks - 1) + block};
}

std::byte* address_of(const Piece& piece, ListSide side) {
    return side == ListSide::to ? piece.to : const_cast<std::byte*>(piece.from);
}

bool follows(const Piece& one, const Piece& next) {
    return !next.to_begins && !next.from_begins && one.to + one.bytes == next.to &&
           one.from + one.bytes == next.from;
}

[[noreturn]] void reject_overlap_of_sides() {
    throw InvalidCopy("a source overlaps a destination: copy through a third buffer");
}

[[noreturn]] void reject_null(const char* argument, std::size_t i, std::size_t bytes) {
    std::string text = "copy_batch: ";
    text.append(argument).append("[").append(std::to_string(i));
    text.append("] is a null pointer: pass memory of sizes[").append(std::to_string(i));
    text.append("] = ").append(std::to_string(bytes)).append(" bytes");
    throw InvalidCopy(text);
}

constexpr std::size_t kMarksOfWord = 64;

// Marks the blocks of the first `count` entries of the destination's index. False if one occurs
// twice: then fewer bits are set than there are entries. A test of each bit before it is set takes
// twice as long.
bool mark_once(CopyList& list, std::size_t count) {
    const Blocks& to = list.to_blocks;
    if (list.marks.empty()) list.marks.resize(to.blocks / kMarksOfWord + 1);
    for (const std::int64_t index : to.index.subspan(list.marked, count - list.marked)) {
        const auto at = static_cast<std::size_t>(index);
        list.marks[at / kMarksOfWord] |= std::uint64_t{1} << (at % kMarksOfWord);
    }
    list.marked = count;
    std::size_t set = 0;
    for (const std::uint64_t bits : list.marks)
        set += static_cast<std::size_t>(std::popcount(bits));
    return set == count;
}

// For fewer than one entry in so many blocks, sorting is faster than bits.
bool has_few_entries(const Blocks& to) { return to.index.size() < to.blocks / kMarksOfWord; }

void check_blocks_once(CopyList& list) {
    const Blocks& to = list.to_blocks;
    if (to.ascending) return;
    if (!has_few_entries(to) && mark_once(list, to.index.size())) return;
    std::vector<std::int64_t> sorted(to.index.begin(), to.index.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice == sorted.end()) return;
    throw InvalidCopy("copy_blocks: block " + std::to_string(*twice) +
                      " of the destination is written twice: give each block once");
}

bool meet(const Extent& a, const Extent& b) {
    return std::less<>()(a.data, b.data + b.bytes) && std::less<>()(b.data, a.data + a.bytes);
}

using Bounds = std::pair<std::uintptr_t, std::uintptr_t>;  // the first byte, and one past the last

// The memory of the pieces on one side.
std::vector<Bounds> bounds_of(std::span<const Piece> pieces, ListSide side) {
    std::vector<Bounds> bounds;
    bounds.reserve(pieces.size());
    for (const Piece& piece : pieces) {
        const auto at = reinterpret_cast<std::uintptr_t>(address_of(piece, side));
        bounds.emplace_back(at, at + piece.bytes);
    }
    return bounds;
}

void sort(std::vector<Bounds>& bounds) {
    if (!std::ranges::is_sorted(bounds)) std::ranges::sort(bounds);
}

// From the lowest to the highest byte.
Bounds hull(const std::vector<Bounds>& bounds) {
    Bounds all = bounds.front();
    for (const Bounds& one : bounds) {
        all = {std::min(all.first, one.first), std::max(all.second, one.second)};
    }
    return all;
}

// Both sorted. Sources may overlap one another, destinations do not: so it is enough to compare
// each with the sources before and after it.
bool sides_overlap(const std::vector<Bounds>& to, const std::vector<Bounds>& from) {
    auto next = to.begin();
    std::uintptr_t read_to = 0;  // maximum end of the sources so far
    for (const Bounds& source : from) {
        while (next != to.end() && next->first < source.first) {
            if (next->first < read_to || next->second > source.first) return true;
            ++next;
        }
        read_to = std::max(read_to, source.second);
        if (next != to.end() && next->first < read_to) return true;
    }
    return false;
}

void check_pieces(std::span<const Piece> pieces) {
    if (pieces.empty()) return;
    std::vector<Bounds> to = bounds_of(pieces, ListSide::to);
    sort(to);
    for (std::size_t i = 1; i < to.size(); ++i) {
        if (to[i].first < to[i - 1].second) {
            throw InvalidCopy(
                "two destinations overlap, and which bytes arrive last is not defined: give each "
                "destination once");
        }
    }
    std::vector<Bounds> from = bounds_of(pieces, ListSide::from);
    const Bounds sources = hull(from);
    if (to.back().second <= sources.first || sources.second <= to.front().first) return;
    sort(from);
    if (sides_overlap(to, from)) reject_overlap_of_sides();
}

}  // namespace

CopyList list_of(std::span<void* const> to, std::span<const void* const> from,
                 std::span<const std::size_t> sizes) {
    CopyList list;
    list.pieces.reserve(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0) continue;
        if (to[i] == nullptr || from[i] == nullptr) {
            reject_null(to[i] == nullptr ? "to" : "from", i, sizes[i]);
        }
        const auto last = std::max(reinterpret_cast<std::uintptr_t>(to[i]),
                                   reinterpret_cast<std::uintptr_t>(from[i]));
        if (sizes[i] > kLastAddress - last) {
            throw InvalidCopy("copy_batch: piece " + std::to_string(i) +
                              " goes past the end of the address space: check sizes[" +
                              std::to_string(i) + "] = " + std::to_string(sizes[i]));
        }
        list.pieces.push_back(
            {static_cast<std::byte*>(to[i]), static_cast<const std::byte*>(from[i]), sizes[i]});
    }
    check_pieces(list.pieces);
    return list;
}

CopyList list_of(const Blocks& to, const Blocks& from, std::size_t block) {
    CopyList list = blocks_of(to, from, block);
    list.check();
    return list;
}

CopyList blocks_of(const Blocks& to, const Blocks& from, std::size_t block) {
    check_array(to, block, "destination");
    check_array(from, block, "source");
    CopyList list{.pieces = {},
                  .to = extent_of(to, block),
                  .from = extent_of(from, block),
                  .to_blocks = to,
                  .from_blocks = from,
                  .block = block,
                  .checked = false};
    // Without bytes there are no pieces. Within one array, blocks may still be disjoint.
    if (block == 0 || meet(list.to, list.from)) list.check();
    return list;
}

void CopyList::check_source(std::size_t blocks) {
    if (!checked) check_entries(from_blocks, blocks, "source");
}

void CopyList::check_first(std::size_t blocks) {
    if (checked) return;
    check_source(blocks);
    check_entries(to_blocks, blocks, "destination");
    if (blocks == to_blocks.index.size()) return check();
    if (blocks <= marked || to_blocks.ascending) return;
    // All marks are counted each time.
    const bool many_marks = to_blocks.blocks / kMarksOfWord > blocks - marked;
    if (many_marks || !mark_once(*this, blocks)) check();
}

void CopyList::check() {
    if (checked) return;
    check_source(from_blocks.index.size());
    check_entries(to_blocks, to_blocks.index.size(), "destination");
    checked = true;
    if (block == 0) {
        to_blocks = from_blocks = {};
        return;
    }
    check_blocks_once(*this);
    if (!meet(to, from)) return;
    make_pieces();
    check_pieces(pieces);
}

std::size_t step_of(std::span<const std::int64_t> index) {
    if (index.size() < 2 || index[1] <= index[0]) return 0;
    const std::uint64_t step = word(index[1]) - word(index[0]);
    return steps_by(index, step) ? step : 0;
}

std::size_t CopyList::count() const { return block == 0 ? pieces.size() : to_blocks.index.size(); }

std::size_t CopyList::bytes() const {
    return block == 0 ? bytes_of(pieces) : block * to_blocks.index.size();
}

std::span<const Piece> CopyList::part(std::size_t first, std::size_t most,
                                      std::vector<Piece>& buffer) const {
    const std::size_t last = first + std::min(most, count() - first);
    if (block == 0) return std::span(pieces).subspan(first, last - first);
    const auto at = [](const Blocks& side, std::size_t i) {
        return side.data + static_cast<std::size_t>(side.index[i]) * side.stride;
    };
    buffer.resize(last - first);
    for (std::size_t i = first; i < last; ++i) {
        buffer[i - first] = {.to = at(to_blocks, i), .from = at(from_blocks, i), .bytes = block};
    }
    return buffer;
}

void CopyList::make_pieces() {
    if (block == 0) return;
    std::vector<Piece> made;
    part(0, count(), made);
    pieces = std::move(made);
    to_blocks = from_blocks = {};
    block = 0;
}

std::byte* lowest(std::span<const Piece> pieces, ListSide side) {
    const auto at = [side](const Piece& piece) { return address_of(piece, side); };
    return at(*std::ranges::min_element(pieces, std::less<>(), at));
}

bool is_contiguous(std::span<const Piece> pieces, ListSide side) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        const std::byte* const end = address_of(pieces[i - 1], side) + pieces[i - 1].bytes;
        const bool begins = side == ListSide::to ? pieces[i].to_begins : pieces[i].from_begins;
        if (begins || end != address_of(pieces[i], side)) return false;
    }
    return !pieces.empty();
}

std::size_t pitch_of(std::span<const Piece> pieces, ListSide side) {
    if (pieces.size() < 2) return 0;
    const auto at = [&](std::size_t i) {
        return reinterpret_cast<std::uintptr_t>(address_of(pieces[i], side));
    };
    const std::uintptr_t pitch = at(1) - at(0);
    if (at(1) <= at(0)) return 0;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        if (at(i) - at(i - 1) != pitch || pieces[i].bytes != pieces[0].bytes) return 0;
    }
    return pitch;
}

std::size_t merged_count(std::span<const Piece> pieces) {
    std::size_t count = pieces.empty() ? 0 : 1;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        count += follows(pieces[i - 1], pieces[i]) ? 0U : 1U;
    }
    return count;
}

std::vector<Piece> merged(std::span<const Piece> pieces) {
    std::vector<Piece> joined;
    joined.reserve(pieces.size());
    for (const Piece& piece : pieces) {
        if (!joined.empty()) {
            Piece& last = joined.back();
            if (follows(last, piece)) {
                last.bytes += piece.bytes;
                continue;
            }
        }
        joined.push_back(piece);
    }
    return joined;
}

std::size_t bytes_of(std::span<const Piece> pieces) {
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.bytes;
    return bytes;
}

std::size_t common_run(std::span<const Piece> pieces) {
    std::size_t run = 0;
    for (const Piece& piece : pieces) {
        if (piece.bytes == run || (run != 0 && piece.bytes % run == 0)) continue;
        run = std::gcd(run, piece.bytes);
    }
    return run;
}

}  // namespace waywiser::transfer
