/* The interface of version 1 as programs were first compiled with it, for tests/test_abi.py. Kept as it
 * was: never edited with native/include/waywiser/transfer.h. */
/* The C interface of libwaywiser_transfer: copies between host memory, GPU memory and files.
 *
 * Every function that returns a waywiser_status leaves a one-line message for the calling thread,
 * which waywiser_last_error() returns until the thread's next call that fails. Functions are thread
 * safe unless they say otherwise. Sizes are in bytes, times in seconds.
 *
 * A stream is a cudaStream_t: NULL is the legacy default stream, WAYWISER_PER_THREAD_STREAM the
 * default stream of the calling thread. The C++ header maps NULL to the second of them when the
 * program is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. These belong to the GPU that is
 * current in the calling thread, as in CUDA; the macros with _OF name the GPU. Copies of host memory
 * alone are ordered in the stream too.
 *
 * A function that fails sets its outputs to NULL or 0. A transfer that is NULL has ended.
 */
#ifndef WAYWISER_TRANSFER_H
#define WAYWISER_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#if defined(__GNUC__)
#define WAYWISER_API __attribute__((visibility("default")))
#else
#define WAYWISER_API
#endif

/* The version of this interface: it changes when a program has to be compiled again. */
#define WAYWISER_TRANSFER_ABI 1
#define WAYWISER_LEGACY_STREAM ((void*)0x1)
#define WAYWISER_PER_THREAD_STREAM ((void*)0x2)
/* The default streams of one GPU, whichever is current. */
#define WAYWISER_LEGACY_STREAM_OF(gpu) ((void*)((((uintptr_t)(gpu) + 1) << 8) | 0x1))
#define WAYWISER_PER_THREAD_STREAM_OF(gpu) ((void*)((((uintptr_t)(gpu) + 1) << 8) | 0x2))
/* Ordered with no stream: only for copies of host memory and of files. */
#define WAYWISER_NO_STREAM ((void*)0x3)

typedef enum waywiser_status {
    WAYWISER_OK = 0,
    WAYWISER_INVALID = 1,        /* an argument is invalid: ranges overlap, a null pointer */
    WAYWISER_UNSUPPORTED = 2,    /* this machine or this build cannot do it */
    WAYWISER_OUT_OF_MEMORY = 3,  /* of the host, of a GPU, or of memory that can be pinned */
    WAYWISER_GPU = 4,            /* a call of the GPU runtime failed; the GPU can still be used */
    WAYWISER_GPU_LOST = 5,       /* the same, and only a new process can use the GPU again */
    WAYWISER_IO = 6,             /* a file: errno is in the message */
    WAYWISER_TIMEOUT = 7,        /* the transfer still runs */
    WAYWISER_CANCELLED = 8,      /* its context was released before the transfer started */
    WAYWISER_FORKED = 9,         /* a child process uses a context of its parent */
    WAYWISER_INTERNAL = 10
} waywiser_status;

/* The message of the last call of this thread that failed; never NULL. */
WAYWISER_API const char* waywiser_last_error(void);
/* The errno value of that failure when its status was WAYWISER_IO, else 0. */
WAYWISER_API int waywiser_last_errno(void);
WAYWISER_API const char* waywiser_version(void);
WAYWISER_API uint32_t waywiser_transfer_abi(void);

/* --- contexts ---------------------------------------------------------------------------- */

/* Owns threads and staging memory; all transfers of a context share them. */
typedef struct waywiser_context waywiser_context;

/* Set `size` to sizeof(waywiser_options). A field that is 0 or NULL means its default. */
typedef struct waywiser_options {
    size_t size;
    size_t threads;      /* maximum of copying threads; 0: what affinity, cgroup and ranks allow */
    size_t pinned_bytes; /* maximum of pinned staging; 0: 16 MiB per thread, capped by limits */
    const int* relays;   /* GPUs whose links may help copies of other GPUs */
    size_t relay_count;
    size_t relay_bytes; /* maximum of staging memory on each relay; 0: 64 MiB */
    /* Maximum of bytes queued at once on a GPU's copy engine per direction; 0: no limit. */
    size_t max_queued_bytes;
    int plain;          /* 1: only plain copies of the GPU runtime; one thread for a file */
    int no_peer_access; /* 1: never enable peer access between the GPUs of a copy */
    /* Maximum of multiprocessors that move a list of short pieces over a GPU's link; 0: what the
     * policy says, or one without. Two fill a PCIe 5.0 link, but slow down concurrent kernels much
     * more. */
    size_t list_multiprocessors;
    /* The file of a policy, or "off". NULL: the file of WAYWISER_POLICY, or the first one that fits
     * this machine in the user's and the system's folder (docs/policy.md). A file that cannot be
     * used gives a warning, and the defaults are used. */
    const char* policy;
    int quiet; /* 1: writes no warnings to stderr; see waywiser_context_warnings() */
} waywiser_options;

WAYWISER_API waywiser_status waywiser_context_create(const waywiser_options* options,
                                                     waywiser_context** context);
/* Cancels transfers whose threads wait for the stream, waits for those that have started, and stops
 * the threads. Copies made by the GPU runtime (pinned memory, lists, small copies) are already in
 * the stream and continue: synchronise it before their memory is freed. Does nothing in a forked
 * child. Memory of waywiser_pinned_alloc outlives the context. */
WAYWISER_API void waywiser_context_release(waywiser_context* context);
/* What the context uses now and may use at most. */
typedef struct waywiser_usage {
    size_t size; /* set to sizeof(waywiser_usage) */
    size_t threads, most_threads;
    size_t pinned_bytes, most_pinned_bytes;
    size_t transfers; /* queued for its threads or in progress on them */
} waywiser_usage;
WAYWISER_API waywiser_status waywiser_context_usage(waywiser_context* context,
                                                    waywiser_usage* usage);

/* Writes the warnings of the context so far, one line each. *needed: size of all of them with the
 * final NUL; 1 if there are none. Each is also written to stderr once per process, unless the
 * option `quiet` is set. */
WAYWISER_API waywiser_status waywiser_context_warnings(waywiser_context* context, char* text,
                                                       size_t capacity, size_t* needed);

/* Fails with WAYWISER_UNSUPPORTED and a reason if the library can use no GPU. GPU memory must not
 * be passed to the library then: it could not distinguish it from host memory. */
WAYWISER_API waywiser_status waywiser_require_gpu(waywiser_context* context);

/* --- memory ------------------------------------------------------------------------------ */

typedef enum waywiser_memory_kind {
    WAYWISER_PAGEABLE = 0,
    WAYWISER_PINNED = 1,
    WAYWISER_DEVICE = 2,
    WAYWISER_MANAGED = 3,
    WAYWISER_MIXED = 4 /* the range covers memory of several kinds, or several registrations */
} waywiser_memory_kind;

typedef struct waywiser_description {
    size_t size; /* set to sizeof(waywiser_description) */
    waywiser_memory_kind kind;
    int gpu;              /* the GPU of device memory, else -1 */
    int numa;             /* node of the first page of host memory, -1 if unknown */
    void* allocation;     /* start of the allocation or registration, NULL if unknown */
    size_t allocation_bytes;
    size_t registrations; /* number of registrations that the range touches */
} waywiser_description;

/* Describes [data, data + bytes): the whole range, not only its start. */
WAYWISER_API waywiser_status waywiser_describe(const void* data, size_t bytes,
                                               waywiser_description* description);

/* Pinned memory at a NUMA node (-1: the node of the calling thread). Independent of any context.
 * If there is no GPU or pinning fails, the memory is pageable: waywiser_describe() shows which. */
WAYWISER_API waywiser_status waywiser_pinned_alloc(size_t bytes, int numa, void** data);
/* Waits for the GPUs that may use the memory, then frees it. */
WAYWISER_API void waywiser_pinned_free(void* data);

/* --- transfers --------------------------------------------------------------------------- */

/* A transfer in progress. */
typedef struct waywiser_transfer waywiser_transfer;

/* Copies with the semantics of cudaMemcpyAsync: ordered in the stream. With pageable memory it
 * returns when the host's part is done. The ranges must not overlap. */
WAYWISER_API waywiser_status waywiser_copy(waywiser_context* context, void* to, const void* from,
                                           size_t bytes, void* stream);
/* Like waywiser_copy() with one side on a GPU, but returns when a host destination is filled and a
 * host source can be reused, even if it is pinned. Waits at most `timeout` seconds (negative:
 * without limit). If the copy is not complete by then, *transfer is its handle, else NULL. While
 * the stream is captured, the copy is recorded and not waited for. */
WAYWISER_API waywiser_status waywiser_copy_and_wait(waywiser_context* context, void* to,
                                                    const void* from, size_t bytes, void* stream,
                                                    double timeout, waywiser_transfer** transfer);
/* Returns at once. The copy starts after the work that is in the stream at the call. */
WAYWISER_API waywiser_status waywiser_copy_async(waywiser_context* context, void* to,
                                                 const void* from, size_t bytes, void* stream,
                                                 waywiser_transfer** transfer);

/* Copies `count` pieces: sizes[i] bytes from from[i] to to[i], in any order. Fails with
 * WAYWISER_INVALID if a destination overlaps another destination or a source. If `transfer` is NULL
 * it behaves like waywiser_copy(), else like waywiser_copy_async(): it returns at once if all
 * pageable pieces have the same source and destination place (host to one GPU, say); otherwise it
 * first copies the pieces of all but one pair of places. Pieces of managed memory are always
 * copied before it returns. */
WAYWISER_API waywiser_status waywiser_copy_batch(waywiser_context* context, void* const* to,
                                                 const void* const* from, const size_t* sizes,
                                                 size_t count, void* stream,
                                                 waywiser_transfer** transfer);
/* Copies `count` blocks of `block` bytes: from `from + from_index[i] * from_stride` to
 * `to + to_index[i] * to_stride`. `to_blocks` and `from_blocks` are the numbers of blocks in the
 * two arrays. Fails with WAYWISER_INVALID if an index is out of range or occurs twice in
 * `to_index`. `transfer` is as in waywiser_copy_batch(). */
WAYWISER_API waywiser_status waywiser_copy_blocks(waywiser_context* context, void* to,
                                                  size_t to_stride, size_t to_blocks,
                                                  const void* from, size_t from_stride,
                                                  size_t from_blocks, size_t block,
                                                  const int64_t* to_index,
                                                  const int64_t* from_index, size_t count,
                                                  void* stream, waywiser_transfer** transfer);

/* Reads up to `bytes` of an open file into any memory; fewer only at the end of the file. If
 * `transfer` is NULL, it returns when all bytes are read and their copies are in the stream, and
 * sets *moved. Else it returns at once, and the file must stay open until the transfer ends. */
WAYWISER_API waywiser_status waywiser_read(waywiser_context* context, int file, uint64_t offset,
                                           void* to, size_t bytes, void* stream, size_t* moved,
                                           waywiser_transfer** transfer);
/* Writes `bytes` of any memory to an open file. */
WAYWISER_API waywiser_status waywiser_write(waywiser_context* context, int file, uint64_t offset,
                                            const void* from, size_t bytes, void* stream,
                                            size_t* moved, waywiser_transfer** transfer);

/* Marks the end of the work in the stream: a transfer of no bytes that ends when the stream reaches
 * it. waywiser_transfer_wait() orders another stream after it. *transfer is NULL if there is
 * nothing to wait for: on a machine without a GPU, or while the stream is captured. */
WAYWISER_API waywiser_status waywiser_mark(waywiser_context* context, void* stream,
                                           waywiser_transfer** transfer);

/* Returns 1 if the transfer has ended, in success or failure. */
WAYWISER_API int waywiser_transfer_done(waywiser_transfer* transfer);
/* Waits until the transfer has ended, at most `timeout` seconds (negative: without limit). Returns
 * the transfer's own status. *moved: bytes that have arrived, also after a failure; may be NULL. */
WAYWISER_API waywiser_status waywiser_transfer_result(waywiser_transfer* transfer, double timeout,
                                                      size_t* moved);
/* Blocks the host until the last device operation is submitted, then makes the stream wait for all
 * of them. If the destination is pageable, it blocks until that is filled. Fails with
 * WAYWISER_TIMEOUT after `timeout` seconds (negative: without limit). */
WAYWISER_API waywiser_status waywiser_transfer_wait(waywiser_transfer* transfer, void* stream,
                                                    double timeout);
/* Writes the 8 bytes of the number 1 to the descriptor (an eventfd, say) when the transfer ends, or
 * at once if it has ended. Writes once for each call. After the write waywiser_transfer_done()
 * returns 1, and the descriptor may be closed. The write must not block. Releasing the context
 * writes for copies of the GPU runtime that continue: waywiser_transfer_done() returns 0 then. */
WAYWISER_API waywiser_status waywiser_transfer_notify(waywiser_transfer* transfer, int descriptor);
/* Frees the handle; the transfer continues. */
WAYWISER_API void waywiser_transfer_release(waywiser_transfer* transfer);

/* --- diagnostics ------------------------------------------------------------------------- */

/* Writes one line that describes how a copy would be done, cut to `capacity` with its final NUL. */
WAYWISER_API waywiser_status waywiser_explain(waywiser_context* context, const void* to,
                                              const void* from, size_t bytes, char* text,
                                              size_t capacity);
/* Writes the discovered machine as JSON. *needed: size of the whole text including its NUL. */
WAYWISER_API waywiser_status waywiser_machine(char* text, size_t capacity, size_t* needed);

#if defined(__cplusplus)
}
#endif
#endif
