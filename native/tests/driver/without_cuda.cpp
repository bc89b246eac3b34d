// The library that a build without CUDA makes: it has no GPU, and says by which command one is
// built that has. A program of its own, since the other native tests have the fake GPU.
#include "waywiser/transfer.h"

#include <cstdio>
#include <cstring>

int main() {
    waywiser_context* context = nullptr;
    if (waywiser_context_create(nullptr, &context) != WAYWISER_OK) {
        std::fprintf(stderr, "no context: %s\n", waywiser_last_error());
        return 1;
    }
    const bool has_none = waywiser_require_gpu(context) != WAYWISER_OK;
    const char* text = waywiser_last_error();
    std::puts(text);
    const bool one_line = std::strchr(text, '\n') == nullptr;
    const bool has_command = std::strstr(text, "make WAYWISER_CUDA=ON survey") != nullptr;
    waywiser_context_release(context);
    return has_none && one_line && has_command ? 0 : 1;
}
