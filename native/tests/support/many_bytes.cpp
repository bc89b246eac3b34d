#include "many_bytes.hpp"

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_read1(void* address);
void __tsan_write1(void* address);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
}
#endif

namespace waywiser::test {

#if defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kRecordedFully = std::size_t{32} << 10;

void record(const void* start, std::size_t bytes, void (*access)(void*)) {
    constexpr std::uintptr_t kPage = 4096;
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t last = first + bytes - 1;
    access(reinterpret_cast<void*>(first));
    for (std::uintptr_t at = (first / kPage + 1) * kPage; at < last; at += kPage) {
        access(reinterpret_cast<void*>(at));
    }
    access(reinterpret_cast<void*>(last));
}

}  // namespace

void stop_recording() { __tsan_ignore_thread_begin(); }
void resume_recording() { __tsan_ignore_thread_end(); }

void copy_bytes(void* to, const void* from, std::size_t bytes) {
    if (bytes <= kRecordedFully) {
        std::memcpy(to, from, bytes);
        return;
    }
    record(from, bytes, __tsan_read1);
    record(to, bytes, __tsan_write1);
    const NotRecorded large;
    std::memcpy(to, from, bytes);
}

void fill_bytes(void* to, int value, std::size_t bytes) {
    if (bytes <= kRecordedFully) {
        std::memset(to, value, bytes);
        return;
    }
    record(to, bytes, __tsan_write1);
    const NotRecorded large;
    std::memset(to, value, bytes);
}

bool same_bytes(const void* one, const void* other, std::size_t bytes) {
    if (bytes <= kRecordedFully) return std::memcmp(one, other, bytes) == 0;
    record(one, bytes, __tsan_read1);
    record(other, bytes, __tsan_read1);
    const NotRecorded large;
    return std::memcmp(one, other, bytes) == 0;
}

#else

void stop_recording() {}
void resume_recording() {}

void copy_bytes(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void fill_bytes(void* to, int value, std::size_t bytes) { std::memset(to, value, bytes); }
bool same_bytes(const void* one, const void* other, std::size_t bytes) {
    return std::memcmp(one, other, bytes) == 0;
}

#endif

}  // namespace waywiser::test
