// The CPU's hint for spin loops.
#pragma once

namespace waywiser::host {

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#elif defined(__powerpc64__)
    asm volatile("or 27,27,27" ::: "memory");
#else
    asm volatile("" ::: "memory");
#endif
}

}  // namespace waywiser::host
