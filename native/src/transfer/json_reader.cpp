#include "transfer/json_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

namespace waywiser::transfer {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& text, unsigned code) {
    const auto put = [&](unsigned bits) { text += static_cast<char>(bits); };
    const auto rest = [&](unsigned shift) { put(0x80U | ((code >> shift) & 0x3fU)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0U | (code >> 6U));
        rest(0);
    } else if (code < 0x10000) {
        put(0xe0U | (code >> 12U));
        rest(6);
        rest(0);
    } else {
        put(0xf0U | (code >> 18U));
        rest(12);
        rest(6);
        rest(0);
    }
}

}  // namespace

std::size_t first_malformed(std::string_view text) {
    const auto byte = [text](std::size_t at) -> unsigned {
        return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    std::size_t at = 0;
    while (at < text.size()) {
        const unsigned first = byte(at);
        std::size_t length = 1;
        unsigned least = 0x80;  // bounds of the second byte
        unsigned most = 0xbf;
        if (first >= 0x80) {
            if (first < 0xc2 || first > 0xf4) return at;
            length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
            if (first == 0xe0) least = 0xa0;
            if (first == 0xed) most = 0x9f;  // no surrogates
            if (first == 0xf0) least = 0x90;
            if (first == 0xf4) most = 0x8f;
            if (byte(at + 1) < least || byte(at + 1) > most) return at;
            for (std::size_t i = 2; i < length; ++i) {
                if (byte(at + i) < 0x80 || byte(at + i) > 0xbf) return at;
            }
        }
        at += length;
    }
    return at;
}

JsonReader::JsonReader(std::string_view text) : all_(text) {
    const std::size_t malformed = first_malformed(text);
    if (malformed < text.size()) throw JsonError("no UTF-8", malformed);
}

void JsonReader::fail(const std::string& what) const { throw JsonError(what, start_); }

void JsonReader::skip_space() {
    while (at_ < all_.size() &&
           (all_[at_] == ' ' || all_[at_] == '\t' || all_[at_] == '\n' || all_[at_] == '\r')) {
        ++at_;
    }
    start_ = at_;
}

// The next character, which is left there; '\0' at the end.
char JsonReader::next() {
    skip_space();
    return at_ < all_.size() ? all_[at_] : '\0';
}

bool JsonReader::take(char expected) {
    if (next() != expected || at_ == all_.size()) return false;
    ++at_;
    return true;
}

void JsonReader::expect(char expected, const char* what) {
    if (!take(expected)) fail(std::string(what) + " is missing");
}

void JsonReader::word(std::string_view expected) {
    if (all_.substr(at_, expected.size()) != expected) fail("an unknown word");
    at_ += expected.size();
}

void JsonReader::enter() {
    if (++depth_ > kMostDepth) fail("more than " + std::to_string(kMostDepth) + " levels");
}

void JsonReader::object(const std::function<void(const std::string& key)>& member) {
    expect('{', "an object");
    enter();
    // Most objects have few keys.
    constexpr std::size_t kFew = 16;
    std::vector<std::string> few;
    few.reserve(kFew);
    std::set<std::string> more;
    if (!take('}')) {
        do {
            if (next() != '"') fail("a key is missing");
            const std::string key = quoted();
            const bool is_known = std::ranges::find(few, key) != few.end();
            if (is_known || (few.size() == kFew && !more.insert(key).second)) {
                fail("a key occurs twice");
            }
            if (few.size() < kFew) few.push_back(key);
            expect(':', "a colon");
            member(key);
        } while (take(','));
        expect('}', "the end of an object");
    }
    leave();
}

void JsonReader::array(const std::function<void()>& element) {
    expect('[', "an array");
    enter();
    if (!take(']')) {
        do {
            element();
        } while (take(','));
        expect(']', "the end of an array");
    }
    leave();
}

std::string JsonReader::text() {
    if (next() != '"') fail("a text is missing");
    return quoted();
}

std::string JsonReader::quoted() {
    std::string text;
    for (++at_; at_ < all_.size(); ++at_) {
        const char c = all_[at_];
        if (c == '"') {
            ++at_;
            return text;
        }
        if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a text");
        if (c == '\\') {
            escape(text);
        } else {
            text += c;
        }
        if (text.size() > kMostText) {
            fail("a text of more than " + std::to_string(kMostText) + " bytes");
        }
    }
    fail("a text without an end");
}

// The four digits after the current character, up to the last of which it moves.
unsigned JsonReader::hex() {
    unsigned value = 0;
    const std::string_view digits = all_.substr(std::min(at_ + 1, all_.size()), 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || digits.size() != 4 || end != digits.data() + 4) {
        fail("a malformed escape in a text");
    }
    at_ += 4;
    return value;
}

void JsonReader::escape(std::string& into) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    const char c = at_ < all_.size() ? all_[at_] : '\0';
    if (const std::size_t known = kLetters.find(c); c != '\0' && known != std::string_view::npos) {
        into += kMeanings[known];
        return;
    }
    if (c != 'u') fail("a malformed escape in a text");
    unsigned code = hex();
    if (code >= 0xd800 && code < 0xdc00 && all_.substr(at_ + 1, 2) == "\\u") {
        at_ += 2;
        const unsigned low = hex();
        if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair in a text");
        code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code < 0xe000) fail("half of a surrogate pair in a text");
    append_utf8(into, code);
}

bool JsonReader::boolean() {
    const char c = next();
    if (c != 't' && c != 'f') fail("true or false is missing");
    word(c == 't' ? "true" : "false");
    return c == 't';
}

// The characters of a number as JSON writes it.
std::string_view JsonReader::number_text() {
    next();
    const std::size_t first = at_;
    const auto at = [this] { return at_ < all_.size() ? all_[at_] : '\0'; };
    const auto digits = [&] {
        if (!is_digit(at())) fail("a number is missing");
        while (is_digit(at())) ++at_;
    };
    if (at() == '-') ++at_;
    if (at() == '0') {
        ++at_;
        if (is_digit(at())) fail("a number with a leading zero");
    } else {
        digits();
    }
    if (at() == '.') {
        ++at_;
        digits();
    }
    if (at() == 'e' || at() == 'E') {
        ++at_;
        if (at() == '+' || at() == '-') ++at_;
        digits();
    }
    return all_.substr(first, at_ - first);
}

double JsonReader::number() {
    const std::string_view digits = number_text();
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value)) {
        fail("a number that is too large or too small");
    }
    return value;
}

std::uint64_t JsonReader::integer() {
    const std::string_view digits = number_text();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
        fail("a number that is not a whole one from 0 to 2^64 - 1");
    }
    return value;
}

void JsonReader::skip() {
    switch (next()) {
        case '{': return object([this](const std::string&) { skip(); });
        case '[': return array([this] { skip(); });
        case '"': quoted(); return;
        case 't':
        case 'f': boolean(); return;
        case 'n': return word("null");
        default: number_text(); return;
    }
}

void JsonReader::pass_over() {
    std::size_t depth = 0;
    bool in_text = false;
    for (next(); at_ < all_.size(); ++at_) {
        const char c = all_[at_];
        if (in_text) {
            if (c == '\\') ++at_;
            in_text = c != '"';
            continue;
        }
        const bool closes = c == '}' || c == ']';
        if (depth == 0 && (closes || c == ',')) return;
        if (c == '"') in_text = true;
        if (c == '{' || c == '[') ++depth;
        if (closes) --depth;
    }
    fail("a value without an end");
}

void JsonReader::end() {
    next();
    if (at_ != all_.size()) fail("something after the end");
}

}  // namespace waywiser::transfer
