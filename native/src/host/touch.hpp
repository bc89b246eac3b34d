// A write that changes nothing.
#pragma once

#include <atomic>
#include <cstddef>

namespace waywiser::host {

// Faults in the page of a byte as a write would. A load and a store could cause two faults. The
// compiler must not know that the atomic operation adds nothing, or it would only load.
inline void touch(std::byte* byte) {
    unsigned zero = 0;
    asm volatile("" : "+r"(zero));
    std::atomic_ref<unsigned char>(*reinterpret_cast<unsigned char*>(byte))
        .fetch_or(static_cast<unsigned char>(zero), std::memory_order_relaxed);
}

}  // namespace waywiser::host
