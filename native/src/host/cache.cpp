#include "cache.hpp"

#include <unistd.h>

#include <cstdint>

#include "parallel.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace waywiser::host {
namespace {

#if defined(__x86_64__)

bool has_clflushopt() {
    static const bool has = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
    }();
    return has;
}

void flush_lines(const char* first, const char* end, std::size_t line) {
    if (has_clflushopt()) {
        for (const char* at = first; at < end; at += line) {
            asm volatile("clflushopt %0" : "+m"(*const_cast<volatile char*>(at)));
        }
    } else {
        for (const char* at = first; at < end; at += line) {
            asm volatile("clflush %0" : "+m"(*const_cast<volatile char*>(at)));
        }
    }
    asm volatile("mfence" ::: "memory");
}

#elif defined(__aarch64__)

void flush_lines(const char* first, const char* end, std::size_t line) {
    for (const char* at = first; at < end; at += line) {
        asm volatile("dc civac, %0" ::"r"(at) : "memory");
    }
    asm volatile("dsb sy\n\tisb" ::: "memory");
}

#elif defined(__powerpc64__)

void flush_lines(const char* first, const char* end, std::size_t line) {
    for (const char* at = first; at < end; at += line) {
        asm volatile("dcbf 0, %0" ::"r"(at) : "memory");
    }
    asm volatile("sync\n\tisync" ::: "memory");
}

#else

void flush_lines(const char*, const char*, std::size_t) {}

#endif

}  // namespace

std::string flush_instruction() {
#if defined(__x86_64__)
    return has_clflushopt() ? "clflushopt" : "clflush";
#elif defined(__aarch64__)
    return "dc civac";
#elif defined(__powerpc64__)
    return "dcbf";
#else
    return {};
#endif
}

std::size_t line_bytes() {
    static const std::size_t line = []() -> std::size_t {
#if defined(__aarch64__)
        std::uint64_t type = 0;
        asm volatile("mrs %0, ctr_el0" : "=r"(type));
        return std::size_t{4} << ((type >> 16) & 15);
#elif defined(_SC_LEVEL1_DCACHE_LINESIZE)
        const long bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
        if (bytes > 0) return static_cast<std::size_t>(bytes);
        return 64;
#else
        return 64;
#endif
    }();
    return line;
}

bool flush(const void* data, std::size_t bytes, const std::vector<int>& cpus) {
    if (flush_instruction().empty()) return false;
    const std::size_t line = line_bytes();
    const auto base = reinterpret_cast<std::uintptr_t>(data) & ~(line - 1);
    const auto* first = reinterpret_cast<const char*>(base);
    const auto span = static_cast<std::size_t>(static_cast<const char*>(data) + bytes - first);
    parallel(span, cpus, [=](std::size_t from, std::size_t to) {
        flush_lines(first + from, first + to, line);
    });
    return true;
}

void dirty(void* data, std::size_t bytes, const std::vector<int>& cpus) {
    auto* first = static_cast<volatile char*>(data);
    const std::size_t line = line_bytes();
    parallel(bytes, cpus, [=](std::size_t from, std::size_t to) {
        for (std::size_t at = from; at < to; at += line) first[at] = first[at];
    });
}

}  // namespace waywiser::host
