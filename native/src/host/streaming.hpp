// A copy with non-temporal stores.
#pragma once

#include <cstddef>
#include <string>

namespace waywiser::host {

// The instructions in use: "avx512", "avx", "sse2", "stnp", or "" if there are none and the copy is
// an ordinary one.
std::string streaming_instructions();

// Like memcpy, and ordered before all later stores.
void copy_streaming(void* destination, const void* source, std::size_t bytes);

}  // namespace waywiser::host
