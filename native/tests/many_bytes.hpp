// Many bytes of tests: made, copied, filled and compared without a record of each of them by the
// thread sanitizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_read1(void* address);
void __tsan_write1(void* address);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
}
#endif

namespace waywiser::test {

// While it lives, the thread sanitizer records no access of this thread.
class NotRecorded {
public:
#if defined(__SANITIZE_THREAD__)
    NotRecorded() { __tsan_ignore_thread_begin(); }
    ~NotRecorded() { __tsan_ignore_thread_end(); }
#else
    NotRecorded() {}
    ~NotRecorded() {}
#endif
    NotRecorded(const NotRecorded&) = delete;
    NotRecorded& operator=(const NotRecorded&) = delete;
};

// The thread sanitizer records every eight bytes of a memcpy, which takes up to a hundred times as
// long as the copy. Of a large range these functions record the first and the last byte and the
// first byte of each page. That finds the same races: chunks and slots of large copies have at
// least a page, and all recorded pages have the same alignment.
#if defined(__SANITIZE_THREAD__)

inline constexpr std::size_t kRecordedFully = std::size_t{32} << 10;

inline void record(const void* start, std::size_t bytes, void (*access)(void*)) {
    constexpr std::uintptr_t kPage = 4096;
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t last = first + bytes - 1;
    access(reinterpret_cast<void*>(first));
    for (std::uintptr_t at = (first / kPage + 1) * kPage; at < last; at += kPage) {
        access(reinterpret_cast<void*>(at));
    }
    access(reinterpret_cast<void*>(last));
}

inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
    if (bytes <= kRecordedFully) {
        std::memcpy(to, from, bytes);
        return;
    }
    record(from, bytes, __tsan_read1);
    record(to, bytes, __tsan_write1);
    const NotRecorded large;
    std::memcpy(to, from, bytes);
}

inline void fill_bytes(void* to, int value, std::size_t bytes) {
    if (bytes <= kRecordedFully) {
        std::memset(to, value, bytes);
        return;
    }
    record(to, bytes, __tsan_write1);
    const NotRecorded large;
    std::memset(to, value, bytes);
}

inline bool same_bytes(const void* one, const void* other, std::size_t bytes) {
    if (bytes <= kRecordedFully) return std::memcmp(one, other, bytes) == 0;
    record(one, bytes, __tsan_read1);
    record(other, bytes, __tsan_read1);
    const NotRecorded large;
    return std::memcmp(one, other, bytes) == 0;
}

#else

inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
}
inline void fill_bytes(void* to, int value, std::size_t bytes) { std::memset(to, value, bytes); }
inline bool same_bytes(const void* one, const void* other, std::size_t bytes) {
    return std::memcmp(one, other, bytes) == 0;
}

#endif

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
