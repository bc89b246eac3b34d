// A mutex for short sections that many threads enter.
#pragma once

#include <pthread.h>

#include <mutex>

#include "host/relax.hpp"

namespace waywiser::host {

// Spins for some microseconds before sleeping, since waking a thread takes 5 to 50 us on a virtual
// machine. A condition variable that waits with it spins for about one, if the C library does that.
class SpinningMutex : public std::mutex {
public:
    SpinningMutex() {
#if defined(__GLIBC__)
        // The base class may have initialised it in any way: POSIX forbids to do so again.
        pthread_mutex_destroy(native_handle());
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
        pthread_mutex_init(native_handle(), &kind);
        pthread_mutexattr_destroy(&kind);
#endif
    }

    void lock() {
        constexpr unsigned kMostPauses = 64;
        for (unsigned pauses = 1; pauses <= kMostPauses; pauses *= 2) {
            if (try_lock()) return;
            for (unsigned i = 0; i < pauses; ++i) relax();
        }
        std::mutex::lock();
    }
};

}  // namespace waywiser::host
