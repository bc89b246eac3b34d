// Calls of the system with faults, for LD_PRELOAD: $PLANTED says which.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int planted(const char* fault) {
    const char* const named = getenv("PLANTED");
    return named != NULL && strstr(named, fault) != NULL;
}

// Binds memory to node 0, whichever node was named; answers that pages of node 0 are on node 1, and
// the reverse.
long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_mbind && a[3] != 0 && planted("wrong node")) *(unsigned long*)a[3] = 1;
    const long answer = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_move_pages && planted("wrong answer")) {
        for (long i = 0; i < a[1]; ++i) ((int*)a[4])[i] ^= 1;
    }
    return answer;
}

// Puts threads that belong to CPUs from 2 on onto CPU 0.
int sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t* cpus) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    const int moved = planted("wrong socket") && !CPU_ISSET(0, cpus) && !CPU_ISSET(1, cpus);
    const size_t used = moved ? sizeof first : bytes;
    return syscall(SYS_sched_setaffinity, process, used, moved ? &first : cpus) < 0 ? -1 : 0;
}

// Says that pages have 4096 bytes.
long sysconf(int name) {
    static long (*real)(int);
    if (real == NULL) real = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PAGESIZE && planted("page size") ? 4096 : real(name);
}
