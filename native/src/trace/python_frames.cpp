#include "trace/python_frames.hpp"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "trace/line_table.hpp"

namespace waywiser::trace::python {
namespace {

struct Interpreter {
    PythonLayout layout;
    int (*is_initialized)() = nullptr;
    int (*is_finalizing)() = nullptr;
    void* (*this_thread)() = nullptr;
    std::uintptr_t code_type = 0;
};

std::atomic<State> the_state{State::None};
std::atomic<int> checks_ordered{0};
Interpreter the_interpreter;  // written once, before the_state says so
std::atomic<const std::string*> the_reason{nullptr};

constexpr std::size_t kMostText = 4096, kMostTable = 1 << 20;

bool copy_memory(std::uintptr_t from, void* to, std::size_t bytes) {
    if (the_state.load(std::memory_order_acquire) == State::Checked) {
        std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
        return true;
    }
    iovec here{to, bytes}, there{reinterpret_cast<void*>(from), bytes};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

template <typename Value>
bool read_value(std::uintptr_t from, Value& value) {
    return copy_memory(from, &value, sizeof value);
}

bool is_code(std::uintptr_t object) {
    std::uintptr_t type = 0;
    return object != 0 && read_value(object + 8, type) && type == the_interpreter.code_type;
}

std::uintptr_t first_frame(std::uintptr_t thread) {
    const PythonLayout& layout = the_interpreter.layout;
    std::uintptr_t frame = 0;
    if (!read_value(thread + layout.thread_frame, frame)) return 0;
    if (layout.frame_holder && frame != 0 && !read_value(frame + *layout.frame_holder, frame))
        return 0;
    return frame;
}

bool is_between(std::uintptr_t frame) {
    const PythonLayout& layout = the_interpreter.layout;
    constexpr char kOwnedByC = 3;
    char owner = 0;
    return layout.frame_owner && read_value(frame + *layout.frame_owner, owner) &&
           owner == kOwnedByC;
}

bool read_instruction(std::uintptr_t frame, RawFrame& raw) {
    const PythonLayout& layout = the_interpreter.layout;
    if (layout.code_instructions != 0) {
        std::uintptr_t address = 0;
        if (!read_value(frame + layout.frame_instruction, address)) return false;
        raw.instruction =
            static_cast<std::int32_t>(address - (raw.code + layout.code_instructions));
        return true;
    }
    if (!read_value(frame + layout.frame_instruction, raw.instruction)) return false;
    if (layout.minor == 10) raw.instruction *= 2;
    return true;
}

// Length and kind of a text, and where its characters are.
struct TextPlace {
    std::uintptr_t data = 0;
    std::size_t length = 0;
    unsigned width = 1;
    bool ascii = true;
};

bool find_text(std::uintptr_t text, TextPlace& place) {
    const PythonLayout& layout = the_interpreter.layout;
    std::uint32_t bits = 0;
    std::int64_t length = 0;
    if (text == 0 || !read_value(text + layout.text_length, length) ||
        !read_value(text + layout.text_state, bits))
        return false;
    const bool compact = (bits >> 5 & 1u) != 0;
    place.width = bits >> 2 & 7u;
    place.ascii = (bits >> 6 & 1u) != 0;
    if (!compact || length < 0 || (place.width != 1 && place.width != 2 && place.width != 4))
        return false;
    place.length = static_cast<std::size_t>(length);
    place.data = text + (place.ascii ? layout.text_ascii : layout.text_other);
    return place.length * place.width <= kMostText;
}

void append_utf8(std::string& text, std::uint32_t c) {
    if (c >= 0xd800 && c < 0xe000) c = 0xfffd;  // bytes of a name that are no UTF-8
    if (c < 0x80) {
        text += static_cast<char>(c);
        return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    const std::array<unsigned, 4> first{0, 0xc0, 0xe0, 0xf0};
    text += static_cast<char>(first[static_cast<std::size_t>(more)] | c >> (6 * more));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80u | (c >> (6 * i) & 63u));
}

std::string to_utf8(const std::string& bytes, unsigned width) {
    std::string text;
    for (std::size_t i = 0; i + width <= bytes.size(); i += width) {
        std::uint32_t c = 0;
        std::memcpy(&c, bytes.data() + i, width);
        append_utf8(text, c);
    }
    return text;
}

// "3.11.7 (main, ...)": 11; 0 for another major version and for builds without a GIL.
int minor_version(const char* version) {
    if (version == nullptr || std::strncmp(version, "3.", 2) != 0) return 0;
    if (std::strstr(version, "free-threading") != nullptr) return 0;
    return static_cast<int>(std::strtol(version + 2, nullptr, 10));
}

void find_interpreter() {
    using detail::python_symbol;
    const auto version = reinterpret_cast<const char* (*)()>(python_symbol("Py_GetVersion"));
    Interpreter& python = the_interpreter;
    python.is_initialized = reinterpret_cast<int (*)()>(python_symbol("Py_IsInitialized"));
    python.this_thread =
        reinterpret_cast<void* (*)()>(python_symbol("PyGILState_GetThisThreadState"));
    python.code_type = reinterpret_cast<std::uintptr_t>(python_symbol("PyCode_Type"));
    if (version == nullptr || python.is_initialized == nullptr || python.this_thread == nullptr ||
        python.code_type == 0)
        return;
    void* finalizing = python_symbol("Py_IsFinalizing");
    if (finalizing == nullptr) finalizing = python_symbol("_Py_IsFinalizing");
    python.is_finalizing = reinterpret_cast<int (*)()>(finalizing);
    const auto layout = python_layout(minor_version(version()), python_symbol("_PyRuntime"));
    if (!layout) {
        detail::check_failed("Python " + std::string(version()) +
                             " is not one of 3.9 to 3.14 with a GIL");
        return;
    }
    python.layout = *layout;
    the_state.store(State::Unchecked, std::memory_order_release);
}

bool is_running() {
    return the_interpreter.is_initialized() != 0 &&
           (the_interpreter.is_finalizing == nullptr || the_interpreter.is_finalizing() == 0);
}

}  // namespace

namespace detail {

void* python_symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

void check_failed(const std::string& why) {
    the_reason = new std::string(why);  // kept as long as the process: it happens once
    the_state.store(State::Off, std::memory_order_release);
}

void check_passed() {
    State expected = State::Unchecked;
    the_state.compare_exchange_strong(expected, State::Checked, std::memory_order_acq_rel);
}

}  // namespace detail

State state() { return the_state.load(std::memory_order_acquire); }

std::string why_off() {
    const std::string* const reason = the_reason.load();
    return reason == nullptr ? std::string() : *reason;
}

void look() {
    if (state() == State::None) find_interpreter();
    if (state() != State::Unchecked || !is_running()) return;
    constexpr int kMostChecks = 100;
    if (checks_ordered.load() >= kMostChecks) return;
    const auto add = reinterpret_cast<int (*)(int (*)(void*), void*)>(
        detail::python_symbol("Py_AddPendingCall"));
    if (add != nullptr && add(&detail::check, nullptr) == 0) ++checks_ordered;
}

std::size_t read_frames(std::span<RawFrame> frames) {
    const State now = state();
    if (now == State::None || now == State::Off || !is_running()) return 0;
    const auto thread = reinterpret_cast<std::uintptr_t>(the_interpreter.this_thread());
    return thread == 0 ? 0 : read_frames_of(thread, frames);
}

std::size_t read_frames_of(std::uintptr_t thread_state, std::span<RawFrame> frames) {
    const PythonLayout& layout = the_interpreter.layout;
    std::size_t count = 0, visited = 0;
    for (std::uintptr_t frame = first_frame(thread_state); frame != 0 && count < frames.size();) {
        RawFrame raw;
        if (!read_value(frame + layout.frame_code, raw.code)) break;
        raw.code &= ~std::uintptr_t{7};  // 3.14 has marks in the lowest bits
        // Frames between Python and C have no code object, or one of the interpreter's.
        if (is_code(raw.code) && !is_between(frame) && read_instruction(frame, raw))
            frames[count++] = raw;
        if (++visited > 4 * frames.size() || !read_value(frame + layout.frame_previous, frame))
            break;
    }
    return count;
}

std::optional<Code> read_code(std::uintptr_t code) {
    const PythonLayout& layout = the_interpreter.layout;
    Code result;
    if (!read_value(code + layout.code_first_line, result.first_line) ||
        !read_value(code + layout.code_file, result.file) ||
        !read_value(code + layout.code_name, result.name) ||
        !read_value(code + layout.code_lines, result.lines))
        return std::nullopt;
    return result;
}

std::optional<Text> read_text(std::uintptr_t text) {
    TextPlace place;
    if (!find_text(text, place)) return std::nullopt;
    Text result;
    result.bytes.resize(place.length * place.width);
    if (!copy_memory(place.data, result.bytes.data(), result.bytes.size())) return std::nullopt;
    result.utf8 = place.ascii ? result.bytes : to_utf8(result.bytes, place.width);
    return result;
}

bool has_bytes(std::uintptr_t text, const std::string& bytes) {
    TextPlace place;
    if (!find_text(text, place) || place.length * place.width != bytes.size()) return false;
    if (state() == State::Checked)
        return std::memcmp(reinterpret_cast<const void*>(place.data), bytes.data(), bytes.size()) ==
               0;
    std::string now(bytes.size(), '\0');
    return copy_memory(place.data, now.data(), now.size()) && now == bytes;
}

int read_line(const Code& code, std::int32_t instruction) {
    const PythonLayout& layout = the_interpreter.layout;
    std::int64_t length = 0;
    if (code.lines == 0 || !read_value(code.lines + layout.bytes_length, length) || length < 0 ||
        static_cast<std::size_t>(length) > kMostTable)
        return 0;
    std::string table(static_cast<std::size_t>(length), '\0');
    if (!copy_memory(code.lines + layout.bytes_data, table.data(), table.size())) return 0;
    return line_of(layout.minor,
                   {reinterpret_cast<const std::uint8_t*>(table.data()), table.size()},
                   code.first_line, instruction);
}

}  // namespace waywiser::trace::python
