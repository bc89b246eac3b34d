// A mutex for short sections that many threads enter.
#pragma once

#include <pthread.h>

#include <mutex>

namespace waywiser::host {

// Who finds it locked looks for about a microsecond before it sleeps: to wake a thread takes 50 us
// on a virtual machine. A plain std::mutex where the C library has no such kind.
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
