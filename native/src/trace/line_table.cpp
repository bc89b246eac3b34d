#include "trace/line_table.hpp"

namespace waywiser::trace {
namespace {

using Table = std::span<const std::uint8_t>;

int signed_byte(std::uint8_t byte) { return byte < 128 ? byte : byte - 256; }

// 3.9: pairs of a step in bytes and a step in lines.
int line_of_steps(Table table, int line, int instruction) {
    int at = 0;
    for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
        at += table[i];
        if (at > instruction) break;
        line += signed_byte(table[i + 1]);
    }
    return line;
}

// 3.10: the same pairs, but the step in lines comes first, and one value means that there is none.
int line_of_ranges(Table table, int line, int instruction) {
    constexpr int kNone = -128;
    int end = 0;
    for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
        const int step = signed_byte(table[i + 1]);
        end += table[i];
        if (step != kNone) line += step;
        if (instruction < end) return step == kNone ? 0 : line;
    }
    return line;
}

int read_number(Table table, std::size_t& at) {
    unsigned value = 0, shift = 0;
    while (at < table.size()) {
        const unsigned byte = table[at++];
        value |= (byte & 63u) << shift;
        shift += 6;
        if ((byte & 64u) == 0 || shift > 30) break;
    }
    return static_cast<int>(value);
}

int read_signed(Table table, std::size_t& at) {
    const int value = read_number(table, at);
    return (value & 1) != 0 ? -(value >> 1) : value >> 1;
}

// 3.11 and later: entries of several forms; only the first byte of an entry has its highest bit
// set.
int line_of_entries(Table table, int line, int instruction) {
    constexpr int kOneLine0 = 10, kOneLine2 = 12, kNoColumns = 13, kLong = 14, kNone = 15;
    int end = 0;
    for (std::size_t at = 0; at < table.size();) {
        const unsigned first = table[at++];
        const int form = static_cast<int>(first >> 3 & 15u);
        end += static_cast<int>((first & 7u) + 1) * 2;
        if (form >= kOneLine0 && form <= kOneLine2) line += form - kOneLine0;
        if (form == kNoColumns || form == kLong) line += read_signed(table, at);
        if (instruction < end) return form == kNone ? 0 : line;
        while (at < table.size() && (table[at] & 128u) == 0) ++at;
    }
    return line;
}

}  // namespace

int line_of(int minor, Table table, int first_line, int instruction) {
    if (instruction < 0) return first_line;
    if (minor <= 9) return line_of_steps(table, first_line, instruction);
    if (minor == 10) return line_of_ranges(table, first_line, instruction);
    return line_of_entries(table, first_line, instruction);
}

}  // namespace waywiser::trace
