// A ping-pong of two ranks in plain C, for the tests and benchmarks of messages between ranks:
// rank 0 prints "BYTES BEST_SECONDS MEDIAN_SECONDS", half a round trip, for each size.
//
//     mpiexec -n 2 plain_mpi SAMPLES BYTES...
//
// Each rank runs on its half of the CPUs. Compiled with -DDEVICE and linked with libcudart, it uses
// memory of GPU (rank mod GPUs). A test compiles it as a library and calls round_trips().
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef DEVICE
#include <cuda_runtime.h>
#endif

static int by_size(const void* a, const void* b) {
    return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

double round_trips(char* buffer, int bytes, int trips, int rank) {
    const double begin = MPI_Wtime();
    for (int n = 0; n < trips; ++n) {
        if (rank == 0) MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begin) / trips / 2;
}

static int local_rank(void) {
    const char* const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_RANK"};
    for (int n = 0; n < 3; ++n) {
        if (getenv(names[n]) != NULL) return atoi(getenv(names[n]));
    }
    exit(3);
}

// The lower half of the allowed CPUs for rank 0, the upper one for rank 1.
static void bind_to_half(int rank) {
    cpu_set_t allowed, half;
    sched_getaffinity(0, sizeof allowed, &allowed);
    CPU_ZERO(&half);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        if (2 * seen++ / CPU_COUNT(&allowed) == rank) CPU_SET(cpu, &half);
    }
    if (CPU_COUNT(&half) > 0) sched_setaffinity(0, sizeof half, &half);
}

int main(int count, char** words) {
    int rank = local_rank();
    const int samples = count > 2 ? atoi(words[1]) : 0;
    if (samples < 1) return 2;
    bind_to_half(rank);
#ifdef DEVICE
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != 0) return 2;
    cudaSetDevice(rank % gpus);
    cudaFree(NULL);
#endif
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double* times = malloc(sizeof(double) * (size_t)samples);
    for (int word = 2; word < count; ++word) {
        const int bytes = atoi(words[word]);
        char* buffer = NULL;
#ifdef DEVICE
        if (cudaMalloc((void**)&buffer, (size_t)bytes + 1) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
        cudaMemset(buffer, rank, (size_t)bytes + 1);
#else
        if (posix_memalign((void**)&buffer, 4096, (size_t)bytes + 1) != 0) return 1;
        memset(buffer, rank, (size_t)bytes + 1);
#endif
        round_trips(buffer, bytes, 20, rank);
        double once = round_trips(buffer, bytes, 10, rank);
        MPI_Bcast(&once, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        const int trips = once < 5e-4 ? (int)(5e-4 / once) + 1 : 1;
        for (int n = 0; n < samples; ++n) times[n] = round_trips(buffer, bytes, trips, rank);
        qsort(times, (size_t)samples, sizeof(double), by_size);
        if (rank == 0) printf("%d %.9f %.9f\n", bytes, times[0], times[samples / 2]);
    }
    MPI_Finalize();
    return 0;
}
