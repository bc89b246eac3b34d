// Reads JSON (RFC 8259) from untrusted text: value by value in the order of the text,
// without a tree. Strict: UTF-8 without a byte order mark, no comments, no trailing commas, no
// duplicate keys, and bounds on depth and on the length of texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace waywiser::transfer {

// The text is not JSON, or not what was expected at this byte of it.
class JsonError : public std::runtime_error {
public:
    JsonError(const std::string& what, std::size_t at)
        : std::runtime_error(what + " at byte " + std::to_string(at)) {}
};

// The first byte that is not part of well-formed UTF-8; the size of the text if there is none.
std::size_t first_malformed(std::string_view text);

class JsonReader {
public:
    static constexpr std::size_t kMostDepth = 32;
    static constexpr std::size_t kMostText = 4096;  // bytes of a text or a key

    // The text must outlive the reader. Throws JsonError if it is not UTF-8.
    explicit JsonReader(std::string_view text);

    // Each of these reads the next value, and throws JsonError if it is of another type.

    // Calls `member` for each key; it must read or skip the key's value.
    void object(const std::function<void(const std::string& key)>& member);
    // Calls `element` before each element; it must read or skip it.
    void array(const std::function<void()>& element);
    std::string text();
    bool boolean();
    // A finite number.
    double number();
    // A number from 0 on, written without sign, fraction and exponent.
    std::uint64_t integer();
    // Any value.
    void skip();
    // Any value, to read it later by a copy of this reader: only its brackets and texts are looked
    // at.
    void pass_over();

    // Throws JsonError if anything but white space is left.
    void end();
    // Throws JsonError at the value that is read now.
    [[noreturn]] void fail(const std::string& what) const;

private:
    void skip_space();
    char next();
    bool take(char expected);
    void expect(char expected, const char* what);
    void word(std::string_view expected);
    std::string_view number_text();
    std::string quoted();
    void escape(std::string& into);
    unsigned hex();
    void enter();
    void leave() { --depth_; }

    std::string_view all_;
    std::size_t at_ = 0;
    std::size_t start_ = 0;  // of the current value
    std::size_t depth_ = 0;
};

}  // namespace waywiser::transfer
