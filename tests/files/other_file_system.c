// Answers of other file systems, for paths that contain OTHER_PATH: the tests preload it.
//
//   OTHER_FLOCK   number of an error for flock; -1: as NFS, which locks what is open for writing
//   OTHER_RANGES  number of an error for locks of ranges
//   OTHER_RENAME  number of an error for each rename and exchange
//   OTHER_LINK    number of an error for hard links
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int number(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

static int is_other(const char *path) {
    const char *part = getenv("OTHER_PATH");
    return part && strstr(path, part);
}

static int is_open_there(int descriptor) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_other(path);
}

static int rejected(int error) {
    errno = error;
    return -1;
}

int flock(int descriptor, int operation) {
    int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
    int error = number("OTHER_FLOCK");
    if (error && is_open_there(descriptor)) {
        if (error > 0)
            return rejected(error);
        if ((operation & LOCK_EX) && (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY)
            return rejected(EBADF);
    }
    return real(descriptor, operation);
}

#define RANGES(name)                                                                          \
    int name(int descriptor, int command, ...) {                                              \
        int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #name);                                 \
        va_list list;                                                                         \
        va_start(list, command);                                                              \
        void *argument = va_arg(list, void *);                                                \
        va_end(list);                                                                         \
        int locks = (command >= F_GETLK && command <= F_SETLKW) ||                            \
                    (command >= F_OFD_GETLK && command <= F_OFD_SETLKW);                      \
        int error = locks ? number("OTHER_RANGES") : 0;                                       \
        return error && is_open_there(descriptor) ? rejected(error)                           \
                                                  : real(descriptor, command, argument);      \
    }
RANGES(fcntl)
RANGES(fcntl64)

int rename(const char *old, const char *new) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    int error = number("OTHER_RENAME");
    return error && is_other(old) ? rejected(error) : real(old, new);
}

int renameat2(int old_at, const char *old, int new_at, const char *new, unsigned flags) {
    int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "renameat2");
    int error = number("OTHER_RENAME");
    return error && is_other(old) ? rejected(error) : real(old_at, old, new_at, new, flags);
}

int link(const char *old, const char *new) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "link");
    int error = number("OTHER_LINK");
    return error && is_other(old) ? rejected(error) : real(old, new);
}

int linkat(int old_at, const char *old, int new_at, const char *new, int flags) {
    int (*real)(int, const char *, int, const char *, int) = dlsym(RTLD_NEXT, "linkat");
    int error = number("OTHER_LINK");
    return error && is_other(old) ? rejected(error) : real(old_at, old, new_at, new, flags);
}
