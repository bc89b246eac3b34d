// A driver that says which version of CUDA it supports ($FAKE_DRIVER, 12000 for 12.0) and has the
// functions of that version. It has no device, and its functions do nothing.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kSuccess = 0, kNoDevice = 100, kFound = 0, kNotFound = 1, kTooOld = 2 };

static int supported(void) {
    const char* said = getenv("FAKE_DRIVER");
    return said == NULL ? 0 : atoi(said);
}

static int nothing(void) { return kNoDevice; }

int cuInit(unsigned flags) {
    (void)flags;
    return kNoDevice;
}

int cuDriverGetVersion(int* version) {
    *version = supported();
    return kSuccess;
}

// Newer than 12.0, with the version that has them.
static const struct {
    const char* name;
    int since;
} kNewer[] = {{"cuMemAdvise_v2", 12020}, {"cuMemPrefetchAsync_v2", 12020}, {"cuMemcpyBatchAsync", 12080}};

int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* found) {
    (void)flags;
    int since = 0;
    for (size_t each = 0; each < sizeof kNewer / sizeof kNewer[0]; ++each) {
        if (strcmp(name, kNewer[each].name) == 0) since = kNewer[each].since;
    }
    const int has = since <= version && since <= supported();
    *function = has ? (void*)nothing : NULL;
    if (strcmp(name, "cuInit") == 0) *function = (void*)cuInit;
    if (strcmp(name, "cuDriverGetVersion") == 0) *function = (void*)cuDriverGetVersion;
    if (strcmp(name, "cuGetProcAddress") == 0) *function = (void*)cuGetProcAddress_v2;
    if (found != NULL) *found = has ? kFound : kTooOld;
    return kSuccess;
}
