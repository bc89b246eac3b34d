// A copy whose stores go around the caches.
#pragma once

#include <cstddef>
#include <string>

namespace waywiser::host {

// The instructions used: "avx512", "avx", "sse2", "stnp", or "" where there are none and the copy
// is an ordinary one.
std::string streaming_instructions();

// Like memcpy, ordered before everything that follows it.
void copy_streaming(void* destination, const void* source, std::size_t bytes);

}  // namespace waywiser::host
