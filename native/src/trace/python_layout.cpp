#include "trace/python_layout.hpp"

#include <array>
#include <cstring>

namespace waywiser::trace {
namespace {

// Before 3.11 each frame is an object; a code object names its instructions by numbers.
PythonLayout layout_of_frame_objects(int minor) {
    PythonLayout layout{.minor = minor, .thread_frame = 24};
    layout.frame_code = 32;
    layout.frame_previous = 24;
    layout.frame_instruction = minor == 9 ? 104 : 96;
    layout.code_first_line = 40;
    layout.code_file = 104;
    layout.code_name = 112;
    layout.code_lines = 120;
    layout.text_ascii = 48;
    layout.text_other = 72;
    return layout;
}

PythonLayout layout_of_3_11() {
    PythonLayout layout{.minor = 11, .thread_frame = 56, .frame_holder = 8};
    layout.frame_code = 32;
    layout.frame_previous = 48;
    layout.frame_instruction = 56;
    layout.code_instructions = 184;
    layout.code_first_line = 72;
    layout.code_file = 112;
    layout.code_name = 120;
    layout.code_lines = 136;
    layout.text_ascii = 48;
    layout.text_other = 72;
    return layout;
}

PythonLayout layout_of_3_12() {
    PythonLayout layout{.minor = 12, .thread_frame = 56, .frame_holder = 0, .frame_owner = 70};
    layout.frame_code = 0;
    layout.frame_previous = 8;
    layout.frame_instruction = 56;
    layout.code_instructions = 192;
    layout.code_first_line = 68;
    layout.code_file = 112;
    layout.code_name = 120;
    layout.code_lines = 136;
    return layout;
}

// Numbers of 64 bits at the beginning of _PyRuntime, in the order of 3.13 and of 3.14.
struct DebugOffsets {
    std::size_t thread, frame, code, bytes, text;
};
constexpr DebugOffsets kOffsets313{19, 28, 34, 64, 67};
constexpr DebugOffsets kOffsets314{22, 31, 39, 74, 77};

std::optional<PythonLayout> layout_from(const void* debug_offsets, int minor) {
    std::array<std::uint64_t, 96> numbers{};
    std::memcpy(numbers.data(), debug_offsets, sizeof numbers);
    if (std::memcmp(numbers.data(), "xdebugpy", 8) != 0) return std::nullopt;
    if (numbers[1] >> 16 != (0x0300u | static_cast<unsigned>(minor))) return std::nullopt;
    if (numbers[2] != 0) return std::nullopt;  // without a GIL
    const DebugOffsets& at = minor == 13 ? kOffsets313 : kOffsets314;
    PythonLayout layout{.minor = minor};
    layout.thread_frame = numbers[at.thread + 4];
    layout.frame_previous = numbers[at.frame + 1];
    layout.frame_code = numbers[at.frame + 2];
    layout.frame_instruction = numbers[at.frame + 3];
    layout.code_file = numbers[at.code + 1];
    layout.code_name = numbers[at.code + 2];
    layout.code_lines = numbers[at.code + 4];
    layout.code_first_line = numbers[at.code + 5];
    layout.code_instructions = numbers[at.code + 9];
    layout.bytes_length = numbers[at.bytes + 1];
    layout.bytes_data = numbers[at.bytes + 2];
    layout.text_state = numbers[at.text + 1];
    layout.text_length = numbers[at.text + 2];
    layout.text_ascii = numbers[at.text + 3];
    layout.text_other = layout.text_ascii + 16;
    return layout;
}

}  // namespace

std::optional<PythonLayout> python_layout(int minor, const void* debug_offsets) {
    if constexpr (sizeof(void*) != 8) return std::nullopt;
    switch (minor) {
        case 9:
        case 10: return layout_of_frame_objects(minor);
        case 11: return layout_of_3_11();
        case 12: return layout_of_3_12();
        case 13:
        case 14:
            if (debug_offsets != nullptr) return layout_from(debug_offsets, minor);
            return std::nullopt;
        default: return std::nullopt;
    }
}

}  // namespace waywiser::trace
