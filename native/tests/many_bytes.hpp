// Many bytes of tests: made, copied, filled and compared without a record of each of them by the
// thread sanitizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace waywiser::test {

// Between the two calls the thread sanitizer records no access of this thread.
void stop_recording();
void resume_recording();

// While it lives, the thread sanitizer records no access of this thread.
class NotRecorded {
public:
    NotRecorded() { stop_recording(); }
    ~NotRecorded() { resume_recording(); }
    NotRecorded(const NotRecorded&) = delete;
    NotRecorded& operator=(const NotRecorded&) = delete;
};

// The thread sanitizer records every eight bytes of a memcpy, which takes up to a hundred times as
// long as the copy. Of a large range these functions record the first and the last byte and the
// first byte of each page. That finds the same races: chunks and slots of large copies have at
// least a page, and all recorded pages have the same alignment.
void copy_bytes(void* to, const void* from, std::size_t bytes);
void fill_bytes(void* to, int value, std::size_t bytes);
bool same_bytes(const void* one, const void* other, std::size_t bytes);

inline bool same_bytes(const std::vector<std::byte>& one, const std::vector<std::byte>& other) {
    return one.size() == other.size() && same_bytes(one.data(), other.data(), one.size());
}

// Bytes that differ from place to place and from seed to seed, made by words. No other thread has
// them yet.
inline std::vector<std::byte> sequence(std::size_t bytes, unsigned seed = 0) {
    const NotRecorded own;
    std::vector<std::byte> filled(bytes);
    std::uint64_t state = (std::uint64_t{seed} + 1) * 0x9E3779B97F4A7C15ULL;
    for (std::size_t at = 0; at < bytes; at += sizeof state) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const std::uint64_t word = state ^ (state >> 29U);
        std::memcpy(filled.data() + at, &word, std::min(sizeof word, bytes - at));
    }
    return filled;
}

}  // namespace waywiser::test
