#include "waywiser/arrangement.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace waywiser {
namespace {

constexpr std::size_t kSlotsPerPiece = 2;  // a list is in a pool of which half is used

// The value of a numeric setting, or its default; 0 if it is not a number.
std::size_t number(const Layout& layout, const std::string& name, std::size_t fallback) {
    const auto it = layout.settings.find(name);
    if (it == layout.settings.end()) return fallback;
    return whole_number(it->second).value_or(0);
}

std::string scattered(const Layout& layout) {
    const auto it = layout.settings.find("scattered");
    return it == layout.settings.end() ? "both" : it->second;
}

struct BoxSettings {
    std::size_t width, height, pitch, rows;
    explicit BoxSettings(const Layout& layout)
        : width(number(layout, "width", 0)),
          height(number(layout, "height", 0)),
          pitch(number(layout, "pitch", 2 * width)),
          rows(number(layout, "rows", 2 * height)) {}
};

std::optional<std::string> unknown_setting(const Layout& layout,
                                           const std::vector<std::string>& known) {
    for (const auto& [name, value] : layout.settings) {
        if (std::ranges::find(known, name) == known.end()) {
            return "a " + layout.text() + " is invalid: there is no '" + name + "'";
        }
    }
    return std::nullopt;
}

std::optional<std::string> not_whole(const Transfer& transfer, std::size_t unit) {
    if (transfer.bytes % unit == 0) return std::nullopt;
    return std::to_string(transfer.bytes) + " bytes are not a whole number of the " +
           std::to_string(unit) + " that a " + transfer.layout.text() + " is made of";
}

std::optional<std::string> box_unsupported_reason(const Transfer& transfer) {
    const Layout& layout = transfer.layout;
    if (auto reason = unknown_setting(layout, {"width", "height", "pitch", "rows"})) return reason;
    const BoxSettings box(layout);
    if (box.width == 0 || box.height == 0) {
        return "a box needs width= (bytes of a row) and height= (rows of a plane)";
    }
    if (box.pitch < box.width || box.rows < box.height) {
        return "a " + layout.text() + " does not fit into rows of " + std::to_string(box.pitch) +
               " bytes and planes of " + std::to_string(box.rows) + " rows";
    }
    if (box.pitch > kMostBytes / box.rows) {
        return "the planes of a " + layout.text() + " are larger than any memory";
    }
    const std::size_t planes = transfer.bytes / box.width / box.height;
    if (planes > kMostBytes / (box.pitch * box.rows)) {
        return "all planes of a " + layout.text() + " together are larger than any memory";
    }
    return not_whole(transfer, box.width * box.height);
}

std::optional<std::string> list_unsupported_reason(const Transfer& transfer) {
    const Layout& layout = transfer.layout;
    if (auto reason = unknown_setting(layout, {"piece", "scattered"})) return reason;
    const std::size_t piece = number(layout, "piece", 0);
    if (piece == 0) return "a list needs piece= (bytes of each piece)";
    const std::vector<std::string> sides{"both", "source", "destination"};
    if (std::ranges::find(sides, scattered(layout)) == sides.end()) {
        return "the pieces of a list are scattered= both, source or destination, not " +
               scattered(layout);
    }
    return not_whole(transfer, piece);
}

// Splitmix64 (Steele, Lea & Flood, OOPSLA 2014): the same order on every machine.
std::uint64_t next(std::uint64_t& state) {
    std::uint64_t z = state += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

// The first `count` of a shuffled order of all slots (Fisher & Yates).
std::vector<std::size_t> shuffled(std::size_t count, std::size_t slots, std::uint64_t seed) {
    std::vector<std::size_t> order(slots);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) {
        std::swap(order[i], order[i + static_cast<std::size_t>(next(seed) % (slots - i))]);
    }
    order.resize(count);
    return order;
}

Arrangement arrange_list(const Transfer& transfer, Side side) {
    Arrangement made{.kind = Layout::Kind::list, .run = number(transfer.layout, "piece", 0)};
    // Layouts without a piece size were rejected.
    made.count = transfer.bytes / made.run;  // NOLINT(clang-analyzer-core.DivideZero)
    const std::string sides = scattered(transfer.layout);
    const bool here = sides == "both" || (sides == "source") == (side == Side::source);
    if (here) {
        made.offsets =
            shuffled(made.count, kSlotsPerPiece * made.count, side == Side::source ? 1 : 2);
    } else {
        made.offsets.resize(made.count);
        std::iota(made.offsets.begin(), made.offsets.end(), std::size_t{0});
    }
    for (std::size_t& offset : made.offsets) {
        offset *= made.run;
        made.extent = std::max(made.extent, offset + made.run);
    }
    return made;
}

Arrangement arrange_box(const Transfer& transfer) {
    const BoxSettings box(transfer.layout);
    Arrangement made{.kind = Layout::Kind::box, .run = box.width};
    // A box without width or height throws NotSupported above.
    // NOLINTBEGIN(clang-analyzer-core.DivideZero)
    made.count = transfer.bytes / box.width;
    made.height = box.height;
    made.pitch = box.pitch;
    made.plane = box.pitch * box.rows;
    made.extent = made.count / made.height * made.plane;  // an array has whole planes
    // NOLINTEND(clang-analyzer-core.DivideZero)
    return made;
}

}  // namespace

std::size_t Arrangement::offset(std::size_t n) const {
    switch (kind) {
        case Layout::Kind::contiguous: return n * run;
        case Layout::Kind::box: return n / height * plane + n % height * pitch;
        case Layout::Kind::list: break;
    }
    return offsets[n];
}

Arrangement arrange(const Transfer& transfer, Side side) {
    if (auto reason = layout_unsupported_reason(transfer)) throw NotSupported(*reason);
    switch (transfer.layout.kind) {
        case Layout::Kind::contiguous: break;
        case Layout::Kind::box: return arrange_box(transfer);
        case Layout::Kind::list: return arrange_list(transfer, side);
    }
    return {.run = transfer.bytes, .count = 1, .extent = transfer.bytes};
}

std::optional<std::string> layout_unsupported_reason(const Transfer& transfer) {
    if (transfer.bytes > kMostBytes) {
        return std::to_string(transfer.bytes) + " bytes are more than any memory has";
    }
    switch (transfer.layout.kind) {
        case Layout::Kind::contiguous: break;
        case Layout::Kind::box: return box_unsupported_reason(transfer);
        case Layout::Kind::list: return list_unsupported_reason(transfer);
    }
    if (transfer.layout.settings.empty()) return std::nullopt;
    return "contiguous bytes have no settings";
}

}  // namespace waywiser
