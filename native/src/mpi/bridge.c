/* The only file that names MPI: see bridge.h. It is compiled on the machine that it is used on. */
#include "bridge.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct waywiser_mpi_ranks {
    MPI_Comm comm;
    int rank, size;
};

struct waywiser_mpi_started {
    MPI_Comm comm;
    int count, most;
    int* bytes; /* that each receive expects, -1 for a send */
    MPI_Request* requests;
    MPI_Status* statuses;
};

typedef waywiser_mpi_ranks Ranks;
typedef waywiser_mpi_started Completion;

static Ranks world_ranks;
static _Thread_local char error_line[WAYWISER_MPI_LINE_BYTES];

/* --- errors -------------------------------------------------------------------------------- */

static int refuse(const char* call, const char* reason) {
    snprintf(error_line, sizeof error_line, "%s: %s", call, reason);
    for (char* at = error_line; *at; ++at) {
        if (*at == '\n') *at = ' ';
    }
    return 1;
}

static int check(int code, const char* call) {
    char reason[MPI_MAX_ERROR_STRING + 1];
    int length = 0;
    if (code == MPI_SUCCESS) return 0;
    if (MPI_Error_string(code, reason, &length) != MPI_SUCCESS) {
        snprintf(reason, sizeof reason, "error %d", code);
    }
    return refuse(call, reason);
}

static int too_large(size_t bytes, const char* call) {
    char reason[128];
    if (bytes <= INT_MAX) return 0;
    snprintf(reason, sizeof reason,
             "a message of %zu bytes: MPI counts in int, so one message has "
             "less than 2 GiB",
             bytes);
    return refuse(call, reason);
}

static int short_message(MPI_Status* status, int expected, const char* call) {
    char reason[64];
    int bytes = 0;
    if (check(MPI_Get_count(status, MPI_BYTE, &bytes), call)) return 1;
    if (bytes == expected) return 0;
    snprintf(reason, sizeof reason, "%d bytes came where %d were expected", bytes, expected);
    return refuse(call, reason);
}

static const char* error(void) { return error_line; }

/* --- the library --------------------------------------------------------------------------- */

static int library(char* line) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int length = 0;
    if (check(MPI_Get_library_version(text, &length), "MPI_Get_library_version")) return 1;
    snprintf(line, WAYWISER_MPI_LINE_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
    for (char* at = line; *at; ++at) {
        if ((unsigned char)*at < ' ') *at = ' ';
    }
    return 0;
}

static const int thread_levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                    MPI_THREAD_MULTIPLE};

static int join(Ranks* ranks, MPI_Comm comm) {
    ranks->comm = comm;
    return check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler") ||
           check(MPI_Comm_rank(comm, &ranks->rank), "MPI_Comm_rank") ||
           check(MPI_Comm_size(comm, &ranks->size), "MPI_Comm_size");
}

static int init(enum waywiser_mpi_threads requested, enum waywiser_mpi_threads* provided) {
    int level = 0;
    if (check(MPI_Init_thread(NULL, NULL, thread_levels[requested], &level), "MPI_Init_thread")) {
        return 1;
    }
    *provided = WAYWISER_MPI_SINGLE;
    for (int each = WAYWISER_MPI_SINGLE; each <= WAYWISER_MPI_MULTIPLE; ++each) {
        if (level == thread_levels[each]) *provided = (enum waywiser_mpi_threads)each;
    }
    /* Errors that belong to no group go to one of these two, by the version of the standard. */
    return check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN),
                 "MPI_Comm_set_errhandler") ||
           join(&world_ranks, MPI_COMM_WORLD);
}

static int finalize(void) { return check(MPI_Finalize(), "MPI_Finalize"); }

/* An extension of Open MPI, MPICH and their relatives; not in all of them. */
extern int MPIX_Query_cuda_support(void) __attribute__((weak));

static int cuda_stated(void) {
    return MPIX_Query_cuda_support ? MPIX_Query_cuda_support() != 0 : -1;
}

/* --- groups -------------------------------------------------------------------------------- */

static Ranks* world(void) { return &world_ranks; }
static int rank(Ranks* ranks) { return ranks->rank; }
static int size(Ranks* ranks) { return ranks->size; }

static Ranks* group(Ranks* from, const int* chosen, int count) {
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    Ranks* ranks = calloc(1, sizeof *ranks);
    int failed = !ranks ? refuse("a group of ranks", "no memory is left")
                        : check(MPI_Comm_group(from->comm, &all), "MPI_Comm_group") ||
                              check(MPI_Group_incl(all, count, chosen, &some), "MPI_Group_incl") ||
                              check(MPI_Comm_create_group(from->comm, some, 0, &comm),
                                    "MPI_Comm_create_group") ||
                              join(ranks, comm);
    if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
    if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
    if (!failed) return ranks;
    free(ranks);
    return NULL;
}

static void leave(Ranks* ranks) {
    int over = 0;
    if (MPI_Finalized(&over) == MPI_SUCCESS && !over) MPI_Comm_free(&ranks->comm);
    free(ranks);
}

/* --- messages between two ranks ------------------------------------------------------------ */

static int send(Ranks* ranks, const void* data, size_t bytes, int to, int tag) {
    if (too_large(bytes, "MPI_Send")) return 1;
    return check(MPI_Send(data, (int)bytes, MPI_BYTE, to, tag, ranks->comm), "MPI_Send");
}

static int receive(Ranks* ranks, void* data, size_t bytes, int from, int tag) {
    MPI_Status status;
    if (too_large(bytes, "MPI_Recv")) return 1;
    return check(MPI_Recv(data, (int)bytes, MPI_BYTE, from, tag, ranks->comm, &status),
                 "MPI_Recv") ||
           short_message(&status, (int)bytes, "MPI_Recv");
}

static void discard(Completion* started) {
    free(started->bytes);
    free(started->requests);
    free(started->statuses);
    free(started);
}

static Completion* prepare(Ranks* ranks, int most) {
    Completion* started = calloc(1, sizeof *started);
    if (started) {
        started->comm = ranks->comm;
        started->most = most;
        started->bytes = calloc((size_t)most + 1, sizeof *started->bytes);
        started->requests = calloc((size_t)most + 1, sizeof *started->requests);
        started->statuses = calloc((size_t)most + 1, sizeof *started->statuses);
        if (started->bytes && started->requests && started->statuses) return started;
        discard(started);
    }
    refuse("messages to be started", "no memory is left");
    return NULL;
}

static int full(Completion* started, const char* call) {
    return started->count == started->most && refuse(call, "more messages than were prepared for");
}

static int start_send(Completion* started, const void* data, size_t bytes, int to, int tag) {
    if (too_large(bytes, "MPI_Isend") || full(started, "MPI_Isend")) return 1;
    if (check(MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, started->comm,
                        &started->requests[started->count]),
              "MPI_Isend")) {
        return 1;
    }
    started->bytes[started->count++] = -1;
    return 0;
}

static int start_receive(Completion* started, void* data, size_t bytes, int from, int tag) {
    if (too_large(bytes, "MPI_Irecv") || full(started, "MPI_Irecv")) return 1;
    if (check(MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, started->comm,
                        &started->requests[started->count]),
              "MPI_Irecv")) {
        return 1;
    }
    started->bytes[started->count++] = (int)bytes;
    return 0;
}

/* After MPI has ended the messages with this code. */
static int ended(Completion* started, int code, const char* call) {
    const int count = started->count;
    int kind = MPI_SUCCESS;
    started->count = 0;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
    for (int each = 0; kind == MPI_ERR_IN_STATUS && each < count; ++each) {
        const int own = started->statuses[each].MPI_ERROR;
        if (own != MPI_SUCCESS && own != MPI_ERR_PENDING) return check(own, call);
    }
    if (check(code, call)) return 1;
    for (int each = 0; each < count; ++each) {
        const int bytes = started->bytes[each];
        if (bytes >= 0 && short_message(&started->statuses[each], bytes, call)) return 1;
    }
    return 0;
}

static int wait(Completion* started) {
    return ended(started, MPI_Waitall(started->count, started->requests, started->statuses),
                 "MPI_Waitall");
}

static int test(Completion* started, int* done) {
    const int code = MPI_Testall(started->count, started->requests, done, started->statuses);
    if (code == MPI_SUCCESS && !*done) return 0;
    return ended(started, code, "MPI_Testall");
}

/* --- messages among all ranks of a group --------------------------------------------------- */

static int barrier(Ranks* ranks) { return check(MPI_Barrier(ranks->comm), "MPI_Barrier"); }

static int broadcast(Ranks* ranks, void* data, size_t bytes, int root) {
    if (too_large(bytes, "MPI_Bcast")) return 1;
    return check(MPI_Bcast(data, (int)bytes, MPI_BYTE, root, ranks->comm), "MPI_Bcast");
}

static int maximum(Ranks* ranks, double* values, int count) {
    return check(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_MAX, ranks->comm),
                 "MPI_Allreduce");
}

static int alltoall(Ranks* ranks, const void* source, void* destination, size_t bytes_each) {
    if (too_large(bytes_each, "MPI_Alltoall")) return 1;
    return check(MPI_Alltoall(source, (int)bytes_each, MPI_BYTE, destination, (int)bytes_each,
                              MPI_BYTE, ranks->comm),
                 "MPI_Alltoall");
}

static int alltoallv(Ranks* ranks, const void* source, const int* counts, const int* offsets,
                     void* destination, const int* to_counts, const int* to_offsets) {
    return check(MPI_Alltoallv(source, counts, offsets, MPI_BYTE, destination, to_counts,
                               to_offsets, MPI_BYTE, ranks->comm),
                 "MPI_Alltoallv");
}

static int scatterv(Ranks* ranks, const void* source, const int* counts, const int* offsets,
                    void* destination, size_t bytes, int root) {
    if (too_large(bytes, "MPI_Scatterv")) return 1;
    return check(MPI_Scatterv(source, counts, offsets, MPI_BYTE, destination, (int)bytes, MPI_BYTE,
                              root, ranks->comm),
                 "MPI_Scatterv");
}

static int gatherv(Ranks* ranks, const void* source, size_t bytes, void* destination,
                   const int* counts, const int* offsets, int root) {
    if (too_large(bytes, "MPI_Gatherv")) return 1;
    return check(MPI_Gatherv(source, (int)bytes, MPI_BYTE, destination, counts, offsets, MPI_BYTE,
                             root, ranks->comm),
                 "MPI_Gatherv");
}

const waywiser_mpi_bridge_functions* waywiser_mpi_bridge(void) {
    static const waywiser_mpi_bridge_functions functions = {WAYWISER_MPI_BRIDGE_VERSION,
                                                            library,
                                                            error,
                                                            init,
                                                            finalize,
                                                            cuda_stated,
                                                            world,
                                                            rank,
                                                            size,
                                                            group,
                                                            leave,
                                                            send,
                                                            receive,
                                                            prepare,
                                                            discard,
                                                            start_send,
                                                            start_receive,
                                                            wait,
                                                            test,
                                                            barrier,
                                                            broadcast,
                                                            maximum,
                                                            alltoall,
                                                            alltoallv,
                                                            scatterv,
                                                            gatherv};
    return &functions;
}
