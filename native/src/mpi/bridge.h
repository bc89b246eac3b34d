/* MPI as functions without a type of MPI. bridge.c, which the mpicc of the machine compiles into a
   shared library, returns them from waywiser_mpi_bridge().

   Functions that return int return 0, or not 0 after an error; error() then has one line on the last
   error of the calling thread. Those that return a pointer return NULL after an error.

   A process that uses a GPU in messages selects it before init(): some libraries bind the GPU that
   is current there. One thread at a time calls these functions.

   Sizes are bytes, ranks are numbers in the group. MPI counts in int: one message has less than
   2 GiB, and a larger one is an error. counts and offsets have one entry for each rank of the group.
   */
#ifndef WAYWISER_MPI_BRIDGE_H
#define WAYWISER_MPI_BRIDGE_H

#include <stddef.h>

#define WAYWISER_MPI_BRIDGE_VERSION 1
#define WAYWISER_MPI_BRIDGE_SYMBOL "waywiser_mpi_bridge"
#define WAYWISER_MPI_LINE_BYTES 1024 /* of a text, with its final zero */

#ifdef __cplusplus
extern "C" {
#endif

/* Ranks that exchange messages: all, or those chosen with group(). */
typedef struct waywiser_mpi_ranks waywiser_mpi_ranks;
/* Messages that were started and not awaited. */
typedef struct waywiser_mpi_started waywiser_mpi_started;

enum waywiser_mpi_threads {
    WAYWISER_MPI_SINGLE,
    WAYWISER_MPI_FUNNELED,
    WAYWISER_MPI_SERIALIZED,
    WAYWISER_MPI_MULTIPLE
};

typedef struct waywiser_mpi_bridge_functions {
    int version; /* WAYWISER_MPI_BRIDGE_VERSION of the compiled source */

    /* Before init() too: what the library calls itself, in one line of WAYWISER_MPI_LINE_BYTES. */
    int (*library)(char *line);
    const char *(*error)(void);

    /* Once in a process. `provided` is the level of threads that the library grants. */
    int (*init)(enum waywiser_mpi_threads requested, enum waywiser_mpi_threads *provided);
    int (*finalize)(void);
    /* Whether the library states that it takes pointers to memory of CUDA: 1, 0, or -1 if it does
       not say. It is a statement, not a test. */
    int (*cuda_stated)(void);

    /* After init(). A process that no launcher started, or that of another library, is alone. */
    waywiser_mpi_ranks *(*world)(void);
    int (*rank)(waywiser_mpi_ranks *);
    int (*size)(waywiser_mpi_ranks *);
    /* Called by the chosen ranks alone, which are numbered in their order. */
    waywiser_mpi_ranks *(*group)(waywiser_mpi_ranks *, const int *chosen, int size);
    void (*leave)(waywiser_mpi_ranks *);

    int (*send)(waywiser_mpi_ranks *, const void *, size_t bytes, int to, int tag);
    /* A message of another size is an error. */
    int (*receive)(waywiser_mpi_ranks *, void *, size_t bytes, int from, int tag);

    waywiser_mpi_started *(*prepare)(waywiser_mpi_ranks *, int most);
    void (*discard)(waywiser_mpi_started *);
    int (*start_send)(waywiser_mpi_started *, const void *, size_t bytes, int to, int tag);
    int (*start_receive)(waywiser_mpi_started *, void *, size_t bytes, int from, int tag);
    int (*wait)(waywiser_mpi_started *);
    /* Whether all are done, which ends them as wait() does. Lets the library make progress. */
    int (*test)(waywiser_mpi_started *, int *done);

    int (*barrier)(waywiser_mpi_ranks *);
    int (*broadcast)(waywiser_mpi_ranks *, void *, size_t bytes, int root);
    /* Replaces each value by the greatest of all ranks. */
    int (*maximum)(waywiser_mpi_ranks *, double *, int count);
    int (*alltoall)(waywiser_mpi_ranks *, const void *source, void *destination,
                    size_t bytes_each);
    int (*alltoallv)(waywiser_mpi_ranks *, const void *source, const int *counts,
                     const int *offsets, void *destination, const int *to_counts,
                     const int *to_offsets);
    /* The parts are those of the root, and NULL elsewhere. */
    int (*scatterv)(waywiser_mpi_ranks *, const void *source, const int *counts,
                    const int *offsets, void *destination, size_t bytes, int root);
    int (*gatherv)(waywiser_mpi_ranks *, const void *source, size_t bytes, void *destination,
                   const int *counts, const int *offsets, int root);
} waywiser_mpi_bridge_functions;

const waywiser_mpi_bridge_functions *waywiser_mpi_bridge(void);

#ifdef __cplusplus
}
#endif

#endif
