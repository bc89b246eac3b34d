// What binaries of this project use of the C library and glibc 2.28 lacks, for linking by
// old_glibc.py. Nothing here is exported.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct stat;

// Functions of their own since 2.33. The number is that of the structure.
#if defined(__x86_64__)
enum { kStructure = 1 };
#elif defined(__aarch64__)
enum { kStructure = 0 };
#endif
int __xstat(int version, const char* path, struct stat* found);
int __lxstat(int version, const char* path, struct stat* found);
int __fxstat(int version, int file, struct stat* found);
int __fxstatat(int version, int folder, const char* path, struct stat* found, int flags);
int stat(const char* path, struct stat* found) { return __xstat(kStructure, path, found); }
int stat64(const char* path, struct stat* found) { return __xstat(kStructure, path, found); }
int lstat(const char* path, struct stat* found) { return __lxstat(kStructure, path, found); }
int lstat64(const char* path, struct stat* found) { return __lxstat(kStructure, path, found); }
int fstat(int file, struct stat* found) { return __fxstat(kStructure, file, found); }
int fstat64(int file, struct stat* found) { return __fxstat(kStructure, file, found); }
int fstatat(int folder, const char* path, struct stat* found, int flags) {
    return __fxstatat(kStructure, folder, path, found, flags);
}
int fstatat64(int folder, const char* path, struct stat* found, int flags) {
    return __fxstatat(kStructure, folder, path, found, flags);
}

// Since 2.32. Unknown counts as several threads.
char __libc_single_threaded = 0;

pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// Waits with a clock, since 2.30: the time that is left, counted on the realtime clock.
static struct timespec on_realtime(clockid_t clock, const struct timespec* until) {
    struct timespec now;
    struct timespec here;
    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &here);
    here.tv_sec += until->tv_sec - now.tv_sec;
    here.tv_nsec += until->tv_nsec - now.tv_nsec;
    if (here.tv_nsec < 0) {
        here.tv_nsec += 1000000000;
        --here.tv_sec;
    } else if (here.tv_nsec >= 1000000000) {
        here.tv_nsec -= 1000000000;
        ++here.tv_sec;
    }
    return here;
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
    const struct timespec end = on_realtime(clock, until);
    return pthread_cond_timedwait(condition, mutex, &end);
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
    const struct timespec end = on_realtime(clock, until);
    return pthread_mutex_timedlock(mutex, &end);
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                               const struct timespec* until) {
    const struct timespec end = on_realtime(clock, until);
    return pthread_rwlock_timedrdlock(lock, &end);
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                               const struct timespec* until) {
    const struct timespec end = on_realtime(clock, until);
    return pthread_rwlock_timedwrlock(lock, &end);
}

// Since 2.36; the static libstdc++ names it.
unsigned arc4random(void) {
    unsigned number = 0;
    if (getentropy(&number, sizeof number) != 0) abort();
    return number;
}
