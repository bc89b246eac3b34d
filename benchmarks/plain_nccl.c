// Collectives and messages of NCCL over all GPUs of this process, in plain C, for
// benchmarks/nccl.py: prints "WHAT BYTES MEDIAN_SECONDS BEST_SECONDS" for each size.
//
//     plain_nccl HOW WHAT SAMPLES BYTES...      HOW: queued, loop
//                                               WHAT: allreduce, allgather, alltoall, send
//
// Bytes are those of nccl-tests: of the larger buffer of each GPU. A sample is as many calls as take
// about a millisecond, between two events on each GPU. The slowest GPU counts. With "queued" the
// streams wait until all calls of a sample are enqueued, so that the GPUs never wait for the host;
// with "loop" they start at once, as in nccl-tests.
#include <cuda_runtime.h>
#include <nccl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                     \
    do {                                                                \
        int status = (int)(call);                                       \
        if (status != 0) {                                              \
            fprintf(stderr, "plain_nccl: %s gives %d\n", #call, status); \
            exit(1);                                                    \
        }                                                               \
    } while (0)

enum { kMostGpus = 16 };
static int gpus;
static int queued;
static atomic_int enqueued;
static ncclComm_t comms[kMostGpus];
static cudaStream_t streams[kMostGpus];
static cudaEvent_t begin[kMostGpus], end[kMostGpus];
static char *from[kMostGpus], *to[kMostGpus];

static void call_once(const char* what, size_t bytes) {
    const size_t part = bytes / (size_t)gpus;
    CHECK(ncclGroupStart());
    for (int gpu = 0; gpu < gpus; ++gpu) {
        ncclComm_t comm = comms[gpu];
        cudaStream_t stream = streams[gpu];
        if (strcmp(what, "allreduce") == 0) {
            CHECK(ncclAllReduce(from[gpu], to[gpu], bytes / 4, ncclInt32, ncclSum, comm, stream));
        } else if (strcmp(what, "allgather") == 0) {
            CHECK(ncclAllGather(from[gpu], to[gpu], part, ncclInt8, comm, stream));
        } else if (strcmp(what, "alltoall") == 0) {
            for (int peer = 0; peer < gpus; ++peer) {
                CHECK(ncclSend(from[gpu] + peer * part, part, ncclInt8, peer, comm, stream));
                CHECK(ncclRecv(to[gpu] + peer * part, part, ncclInt8, peer, comm, stream));
            }
        } else if (gpu == 0) {
            CHECK(ncclSend(from[0], bytes, ncclInt8, 1, comm, stream));
        } else if (gpu == 1) {
            CHECK(ncclRecv(to[1], bytes, ncclInt8, 0, comm, stream));
        }
    }
    CHECK(ncclGroupEnd());
}

static void CUDART_CB wait_for_all(void* unused) {
    (void)unused;
    while (!atomic_load(&enqueued)) sched_yield();
}

static double sample(const char* what, size_t bytes, int calls) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamSynchronize(streams[gpu]));
    }
    atomic_store(&enqueued, 0);
    for (int gpu = 0; gpu < gpus; ++gpu) {
        CHECK(cudaSetDevice(gpu));
        if (queued) CHECK(cudaLaunchHostFunc(streams[gpu], wait_for_all, NULL));
        CHECK(cudaEventRecord(begin[gpu], streams[gpu]));
    }
    for (int n = 0; n < calls; ++n) call_once(what, bytes);
    double slowest = 0;
    for (int gpu = 0; gpu < gpus; ++gpu) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaEventRecord(end[gpu], streams[gpu]));
    }
    atomic_store(&enqueued, 1);
    for (int gpu = 0; gpu < gpus; ++gpu) {
        float milliseconds = 0;
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaEventSynchronize(end[gpu]));
        CHECK(cudaEventElapsedTime(&milliseconds, begin[gpu], end[gpu]));
        if (milliseconds / 1e3 / calls > slowest) slowest = milliseconds / 1e3 / calls;
    }
    return slowest;
}

static int by_size(const void* a, const void* b) {
    return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

int main(int count, char** words) {
    const int samples = count > 4 ? atoi(words[3]) : 0;
    if (samples < 1) return fprintf(stderr, "usage: plain_nccl HOW WHAT SAMPLES BYTES...\n"), 2;
    const size_t most = (size_t)1 << 30;
    double* times = malloc(sizeof(double) * (size_t)samples);
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus > kMostGpus) gpus = kMostGpus;
    CHECK(ncclCommInitAll(comms, gpus, NULL));
    for (int gpu = 0; gpu < gpus; ++gpu) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&begin[gpu]));
        CHECK(cudaEventCreate(&end[gpu]));
        CHECK(cudaMalloc((void**)&from[gpu], most));
        CHECK(cudaMalloc((void**)&to[gpu], most));
    }
    for (int word = 4; word < count; ++word) {
        const size_t bytes = strtoull(words[word], NULL, 10);
        if (bytes == 0 || bytes > most) return fprintf(stderr, "bytes: 1 to 1 GiB\n"), 2;
        queued = 0;  // the first calls of a size may wait for the whole GPU
        for (int n = 0; n < 5; ++n) sample(words[2], bytes, 1);
        const double once = sample(words[2], bytes, 3);
        const int calls = once < 1e-3 ? (int)(1e-3 / once) + 1 : 1;
        queued = strcmp(words[1], "queued") == 0;
        for (int n = 0; n < samples; ++n) times[n] = sample(words[2], bytes, calls);
        qsort(times, (size_t)samples, sizeof(double), by_size);
        printf("%s %zu %.9f %.9f\n", words[2], bytes, times[samples / 2], times[0]);
    }
    return 0;
}
