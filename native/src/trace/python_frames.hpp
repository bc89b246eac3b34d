// The frames of the calling thread in CPython, read where they lie. While a thread is in a call
// from Python, nothing changes its frames: so neither the GIL nor a function of Python is needed,
// except the one that returns the thread's own state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trace/python_layout.hpp"

namespace waywiser::trace::python {

struct RawFrame {
    std::uintptr_t code = 0;
    std::int32_t instruction = 0;  // byte offset in the code
};

// What is in a code object now. Another one may lie at the same address later.
struct Code {
    int first_line = 0;
    std::uintptr_t file = 0, name = 0, lines = 0;
    bool operator==(const Code&) const = default;
};

struct Text {
    std::string bytes;  // as Python keeps it
    std::string utf8;
};

enum class State : std::uint8_t {
    None,       // no Python in this process, or none yet
    Unchecked,  // found; memory is read carefully until the check was made
    Checked,    // Python's own interface says the same
    Off,        // of no known version, or the check has failed
};

State state();
// Looks for Python in the process, and has its main thread make the check. Called again and again.
void look();
// Why it is off, in words.
std::string why_off();

// Frames of the calling thread, innermost first; 0 if it runs no Python.
std::size_t read_frames(std::span<RawFrame> frames);
std::size_t read_frames_of(std::uintptr_t thread_state, std::span<RawFrame> frames);
std::optional<Code> read_code(std::uintptr_t code);
std::optional<Text> read_text(std::uintptr_t text);
// Whether a text has these bytes still.
bool has_bytes(std::uintptr_t text, const std::string& bytes);
int read_line(const Code& code, std::int32_t instruction);

namespace detail {
void check_failed(const std::string& why);
void check_passed();
// Called by the main thread of Python, with the GIL. Compares what this file reads with what the
// interface of Python says.
int check(void*);
void* python_symbol(const char* name);
}  // namespace detail

}  // namespace waywiser::trace::python
