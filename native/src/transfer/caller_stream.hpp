// The stream that a caller passes.
#pragma once

namespace waywiser::transfer {

// A stream as a caller names it.
struct CallerStream {
    void* handle = nullptr;  // the runtime's stream handle
    int gpu = -1;            // owner of a default stream; -1: the current GPU
    bool none = false;       // ordered with no stream: only for host memory and files

    // Converts the stream constants of transfer.h.
    static CallerStream of(void* given);
    [[nodiscard]] bool is_default() const;
    [[nodiscard]] bool is_legacy() const;
    [[nodiscard]] bool is_per_thread() const;
};

}  // namespace waywiser::transfer
