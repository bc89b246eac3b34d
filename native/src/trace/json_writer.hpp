// Writes JSON as text.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace waywiser::trace {

class JsonWriter {
public:
    void begin_object() { begin('{'); }
    void end_object() { end('}'); }
    void begin_list() { begin('['); }
    void end_list() { end(']'); }
    // Of the value that comes next.
    JsonWriter& key(std::string_view name) {
        separate();
        quote(name);
        text_ += ':';
        separated_ = true;
        return *this;
    }
    void value(std::string_view text) {
        separate();
        quote(text);
    }
    void value(const char* text) { value(std::string_view(text)); }
    void value(bool flag) { raw(flag ? "true" : "false"); }
    void null() { raw("null"); }
    template <std::integral Number>
    void value(Number number) {
        raw(std::to_string(number));
    }
    const std::string& text() const { return text_; }

private:
    void raw(std::string_view text) {
        separate();
        text_ += text;
    }
    void separate() {
        if (!separated_) text_ += ',';
        separated_ = false;
    }
    void begin(char bracket) {
        separate();
        text_ += bracket;
        separated_ = true;
    }
    void end(char bracket) {
        text_ += bracket;
        separated_ = false;
    }
    void quote(std::string_view text);

    std::string text_;
    bool separated_ = true;
};

}  // namespace waywiser::trace
