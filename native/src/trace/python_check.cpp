// Compares the frames that are read from memory with those that Python's own interface returns.
#include <array>
#include <cstring>
#include <span>

#include "trace/python_frames.hpp"

namespace waywiser::trace::python {
namespace {

struct Interface {
    void* (*thread)() = nullptr;
    void* (*first_frame)(void*) = nullptr;
    void* (*code)(void*) = nullptr;
    int (*line)(void*) = nullptr;
    void* (*previous)(void*) = nullptr;
    void* (*attribute)(void*, const char*) = nullptr;
    const char* (*utf8)(void*) = nullptr;
    void (*release)(void*) = nullptr;
    void (*clear_error)() = nullptr;

    bool complete() const {
        return thread != nullptr && first_frame != nullptr && code != nullptr && line != nullptr &&
               previous != nullptr && attribute != nullptr && utf8 != nullptr &&
               release != nullptr && clear_error != nullptr;
    }
};

template <typename Function>
void find_call(const char* name, Function& function) {
    function = reinterpret_cast<Function>(detail::python_symbol(name));
}

Interface find_interface() {
    Interface found;
    find_call("PyThreadState_Get", found.thread);
    find_call("PyThreadState_GetFrame", found.first_frame);
    find_call("PyFrame_GetCode", found.code);
    find_call("PyFrame_GetLineNumber", found.line);
    find_call("PyFrame_GetBack", found.previous);
    find_call("PyObject_GetAttrString", found.attribute);
    find_call("PyUnicode_AsUTF8", found.utf8);
    find_call("Py_DecRef", found.release);
    find_call("PyErr_Clear", found.clear_error);
    return found;
}

bool same_text(const Interface& python, void* code, const char* name, std::uintptr_t text) {
    void* const value = python.attribute(code, name);
    if (value == nullptr) {
        python.clear_error();
        return false;
    }
    const char* const expected = python.utf8(value);
    if (expected == nullptr) python.clear_error();  // no UTF-8
    const auto read = read_text(text);
    const bool same = read && (expected == nullptr || read->utf8 == expected);
    python.release(value);
    return same;
}

// Empty: the same.
std::string difference(const Interface& python, void* frame, const RawFrame& raw) {
    void* const code = python.code(frame);
    std::string found;
    const auto read = read_code(raw.code);
    if (!read) {
        found = "an unknown code object";
    } else if (!same_text(python, code, "co_filename", read->file) ||
               !same_text(python, code, "co_name", read->name)) {
        found = "another name";
    } else {
        const int expected = python.line(frame), line = read_line(*read, raw.instruction);
        if (line != expected && !(line == 0 && expected <= 0)) {
            found = "line " + std::to_string(line) + " instead of " + std::to_string(expected);
        }
    }
    python.release(code);
    return found;
}

// The place of the first of the frames from `at` on that has the code object of a frame of the
// interface, which leaves out frames that are being made.
std::size_t place_of(const Interface& python, void* frame, std::span<const RawFrame> raw,
                     std::size_t at) {
    void* const code = python.code(frame);
    while (at < raw.size() && raw[at].code != reinterpret_cast<std::uintptr_t>(code)) ++at;
    python.release(code);
    return at;
}

}  // namespace

int detail::check(void*) {
    const Interface python = find_interface();
    if (!python.complete()) {
        check_failed("this Python does not export its interface for frames");
        return 0;
    }
    void* const thread = python.thread();
    std::array<RawFrame, 32> raw;
    const std::size_t count = read_frames_of(reinterpret_cast<std::uintptr_t>(thread), raw);
    void* frame = python.first_frame(thread);
    std::size_t compared = 0;
    std::string found;
    while (frame != nullptr && compared < raw.size() && found.empty()) {
        const std::size_t at = place_of(python, frame, {raw.data(), count}, compared);
        if (at < count) {
            found = difference(python, frame, raw[at]);
        } else if (count < raw.size()) {
            found = "a frame is missing";
        }
        compared = at + 1;
        void* const previous = python.previous(frame);
        python.release(frame);
        frame = previous;
    }
    if (frame != nullptr) python.release(frame);
    if (!found.empty()) {
        check_failed("the frames of this Python are not where they are expected (" + found + ")");
    } else if (compared != 0) {
        check_passed();
    }
    return 0;
}

}  // namespace waywiser::trace::python
