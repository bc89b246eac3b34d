#include "trace/json_writer.hpp"

#include <array>
#include <cstdio>

namespace waywiser::trace {
namespace {

// Bytes of the character of UTF-8 that begins here; 0: it is none.
std::size_t character_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    const std::size_t count = first < 0x80   ? 1
                              : first < 0xc2 ? 0
                              : first < 0xe0 ? 2
                              : first < 0xf0 ? 3
                              : first < 0xf5 ? 4
                                             : 0;
    if (count == 0 || count > text.size()) return 0;
    for (std::size_t i = 1; i < count; ++i) {
        if ((byte(i) & 0xc0u) != 0x80u) return 0;
    }
    // Too long a form, half of a pair of UTF-16, or beyond the last character.
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
        (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
        return 0;
    return count;
}

}  // namespace

void JsonWriter::quote(std::string_view text) {
    text_ += '"';
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        const char c = text.front();
        if (bytes == 0) {
            text_ += "\\ufffd";
        } else if (bytes > 1) {
            text_ += text.substr(0, bytes);
        } else if (c == '"' || c == '\\') {
            text_ += '\\';
            text_ += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> escaped{};
            std::snprintf(escaped.data(), escaped.size(), "\\u%04x",
                          static_cast<unsigned>(static_cast<unsigned char>(c)));
            text_ += escaped.data();
        } else {
            text_ += c;
        }
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    text_ += '"';
}

}  // namespace waywiser::trace
