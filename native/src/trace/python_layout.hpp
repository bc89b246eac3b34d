// Where CPython 3.9 to 3.14 keeps what a line is found by. 64-bit builds with a GIL alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace waywiser::trace {

struct PythonLayout {
    int minor = 0;
    // In the thread's state: the frame, or a pointer to what holds it (`frame_holder`).
    std::size_t thread_frame = 0;
    std::optional<std::size_t> frame_holder;
    // Where a frame says that it stands between Python and C, if it has a code object all the same.
    std::optional<std::size_t> frame_owner;
    std::size_t frame_code = 0, frame_previous = 0, frame_instruction = 0;
    // The instruction is an address in the code object from here on; 0: a number in the frame.
    std::size_t code_instructions = 0;
    std::size_t code_first_line = 0, code_file = 0, code_name = 0, code_lines = 0;
    std::size_t text_length = 16, text_state = 32, text_ascii = 40, text_other = 56;
    std::size_t bytes_length = 16, bytes_data = 32;
};

// None for other versions, and for builds without a GIL. `debug_offsets`: _PyRuntime of 3.13 and
// later.
std::optional<PythonLayout> python_layout(int minor, const void* debug_offsets);

}  // namespace waywiser::trace
