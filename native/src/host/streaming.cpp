#include "streaming.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace waywiser::host {
namespace {

constexpr std::size_t kLine = 64;

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void lines_avx512(char* to, const char* from,
                                                     std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i, to += kLine, from += kLine) {
        const __m512i all = _mm512_loadu_si512(from);
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), all);
    }
    _mm_sfence();
}

__attribute__((target("avx"))) void lines_avx(char* to, const char* from, std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i, to += kLine, from += kLine) {
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32), high);
    }
    _mm_sfence();
}

void lines_sse2(char* to, const char* from, std::size_t lines) {
    for (std::size_t i = 0; i < lines * 4; ++i, to += 16, from += 16) {
        const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        _mm_stream_si128(reinterpret_cast<__m128i*>(to), part);
    }
    _mm_sfence();
}

struct Choice {
    const char* name;
    void (*lines)(char*, const char*, std::size_t);
};

Choice choose() {
    if (__builtin_cpu_supports("avx512f")) return {"avx512", lines_avx512};
    if (__builtin_cpu_supports("avx")) return {"avx", lines_avx};
    return {"sse2", lines_sse2};
}

#elif defined(__aarch64__)

struct Choice {
    const char* name;
    void (*lines)(char*, const char*, std::size_t);
};

void lines_stnp(char* to, const char* from, std::size_t lines) {
    for (std::size_t i = 0; i < lines; ++i, to += kLine, from += kLine) {
        asm volatile(
            "ldp q0, q1, [%1]\n\tldp q2, q3, [%1, #32]\n\t"
            "stnp q0, q1, [%0]\n\tstnp q2, q3, [%0, #32]" ::"r"(to),
            "r"(from)
            : "memory", "v0", "v1", "v2", "v3");
    }
    asm volatile("dmb ishst" ::: "memory");
}

Choice choose() { return {"stnp", lines_stnp}; }

#else

struct Choice {
    const char* name;
    void (*lines)(char*, const char*, std::size_t);
};

Choice choose() {
    return {"", [](char* to, const char* from, std::size_t lines) {
                std::memcpy(to, from, lines * kLine);
            }};
}

#endif

const Choice& chosen() {
    static const Choice choice = choose();
    return choice;
}

}  // namespace

std::string streaming_instructions() { return chosen().name; }

void copy_streaming(void* destination, const void* source, std::size_t bytes) {
    auto* to = static_cast<char*>(destination);
    const auto* from = static_cast<const char*>(source);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kLine;
    const std::size_t head = past == 0 ? 0 : std::min(bytes, kLine - past);
    std::memcpy(to, from, head);
    const std::size_t lines = (bytes - head) / kLine;
    if (lines > 0) chosen().lines(to + head, from + head, lines);
    const std::size_t done = head + lines * kLine;
    std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace waywiser::host
