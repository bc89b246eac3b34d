// A mutex for short sections that many threads enter.
#pragma once

#include <pthread.h>

#include <mutex>

namespace waywiser::host {

// Spins for about a microsecond before sleeping, since waking a thread takes 50 us on a virtual
// machine. A plain std::mutex if the C library does not support that.
class SpinningMutex : public std::mutex {
public:
    SpinningMutex() {
#if defined(__GLIBC__)
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
        pthread_mutex_init(native_handle(), &kind);
        pthread_mutexattr_destroy(&kind);
#endif
    }
};

}  // namespace waywiser::host
