/* The C interface of libwaywiser_transfer: copies between host memory, GPU memory and files.
 *
 * What holds for every function, unless its comment says otherwise (docs/ownership.md has
 * examples):
 *
 * Errors. A function that returns a waywiser_status leaves a one-line message for the calling
 * thread, which waywiser_last_error() returns until the thread's next call that fails. A function
 * that fails sets its outputs to NULL or 0.
 *
 * Ownership. The caller owns contexts, transfers (their handles) and pinned memory that a function
 * returns, and releases each once. Memory, files and streams that the caller passes stay the
 * caller's: the library never frees, closes or synchronises them. Both sides of a copy must stay
 * valid, the source unchanged and the destination unread, until the copy has ended; the comments
 * say when one side is free earlier. Arrays of pointers, sizes and indices, options and texts are
 * read during the call only.
 *
 * Ordering. A copy starts after the work that is in its stream at the call, and later work in the
 * stream starts after it, if the call has no handle; else waywiser_transfer_wait() orders a stream
 * after it. Copies are not ordered with work in other streams, except as CUDA orders the legacy
 * default stream.
 *
 * Thread safety. Threads may call all functions at once, also with the same context or transfer.
 * A context or a transfer must not be released while another thread uses it. Calls keep the current
 * GPU of the thread. A child of fork() may use neither contexts nor transfers of its parent, and
 * releasing them does nothing there. Where the system starts no thread (a limit of processes is
 * reached), the calling threads do the work: a call returns when it is done, also one that returns
 * at once elsewhere, and also after its timeout.
 *
 * Units. Sizes, offsets and strides are in bytes, times in seconds, counts in pieces or blocks.
 * GPUs are numbers of the GPU runtime, NUMA nodes those of the operating system.
 *
 * A stream is a cudaStream_t: NULL is the legacy default stream, WAYWISER_PER_THREAD_STREAM the
 * default stream of the calling thread. The C++ header maps NULL to the second of them when the
 * program is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. These belong to the GPU that is
 * current in the calling thread, as in CUDA; the macros with _OF name the GPU. Copies of host
 * memory alone are ordered in the stream too.
 *
 * A transfer that is NULL has ended.
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
#define WAYWISER_TRANSFER_ABI 2
#define WAYWISER_LEGACY_STREAM ((void*)0x1)
#define WAYWISER_PER_THREAD_STREAM ((void*)0x2)
/* The default streams of one GPU, whichever is current. */
#define WAYWISER_LEGACY_STREAM_OF(gpu) ((void*)((((uintptr_t)(gpu) + 1) << 8) | 0x1))
#define WAYWISER_PER_THREAD_STREAM_OF(gpu) ((void*)((((uintptr_t)(gpu) + 1) << 8) | 0x2))
/* Ordered with no stream: only for copies of host memory and of files. */
#define WAYWISER_NO_STREAM ((void*)0x3)

/* Later versions may have more of these at the end: each but WAYWISER_OK is a failure. */
typedef enum waywiser_status {
    WAYWISER_OK = 0,
    WAYWISER_INVALID = 1,       /* an argument is invalid: ranges overlap, a null pointer */
    WAYWISER_UNSUPPORTED = 2,   /* this machine or this build cannot do it */
    WAYWISER_OUT_OF_MEMORY = 3, /* of the host, of a GPU, or of memory that can be pinned */
    WAYWISER_GPU = 4,           /* a call of the GPU runtime failed; the GPU can still be used */
    WAYWISER_GPU_LOST = 5,      /* the same, and only a new process can use the GPU again */
    WAYWISER_IO = 6,            /* a file: errno is in the message */
    WAYWISER_TIMEOUT = 7,       /* the transfer still runs */
    WAYWISER_CANCELLED = 8,     /* by the program, or its context was released before it started */
    WAYWISER_FORKED = 9,        /* a child process uses a context of its parent */
    WAYWISER_INTERNAL = 10,
    /* A GPU does not answer. It may use the memory of both sides at any time: neither may be freed
     * or used again. */
    WAYWISER_IN_USE = 11
} waywiser_status;

/* The name of a status, "WAYWISER_TIMEOUT" say; for another value a text that says so. A constant
 * text, never NULL. */
WAYWISER_API const char* waywiser_status_name(waywiser_status status);
/* The message of the last call of this thread that failed; never NULL. The library owns the text,
 * which is valid until the thread's next call that fails. */
WAYWISER_API const char* waywiser_last_error(void);
/* The errno value of that failure when its status was WAYWISER_IO, else 0. */
WAYWISER_API int waywiser_last_errno(void);
/* The version of the library, "1.2.3", a constant text; and WAYWISER_TRANSFER_ABI of the library.
 */
WAYWISER_API const char* waywiser_version(void);
WAYWISER_API uint32_t waywiser_transfer_abi(void);

/* --- contexts ---------------------------------------------------------------------------- */

/* Owns threads and staging memory; all transfers of a context share them. Both are created when a
 * transfer first needs them. */
typedef struct waywiser_context waywiser_context;

/* Set `size` to sizeof(waywiser_options). A field that is 0 or NULL means its default. */
typedef struct waywiser_options {
    size_t size;
    size_t threads;      /* maximum of copying threads; 0: what affinity, cgroup and ranks allow */
    size_t pinned_bytes; /* maximum of pinned staging; 0: 16 MiB per thread, capped by limits */
    const int* relays;   /* numbers of GPUs whose links may help copies of other GPUs */
    size_t relay_count;  /* entries of `relays` */
    /* Maximum of staging memory on each GPU, for relays and lists; 0: 64 MiB. A relay whose chunk
     * is larger has one of them. */
    size_t relay_bytes;
    /* Maximum of bytes queued at once on a GPU's copy engine per direction; 0: no limit. */
    size_t max_queued_bytes;
    int plain;          /* 1: only plain copies of the GPU runtime; one thread for a file */
    int no_peer_access; /* 1: never enable peer access between the GPUs of a copy */
    /* Maximum of multiprocessors that move a list of short pieces over a GPU's link; 0: what the
     * policy says, or two without; if the pieces are contiguous in host memory one, or, of long
     * lists, eight for a part of the time. Two that access host memory fill a PCIe 5.0 link; one
     * leaves more to concurrent kernels. */
    size_t list_multiprocessors;
    /* The file of a policy, or "off". NULL: the file of WAYWISER_POLICY, or the first one that fits
     * this machine in the user's and the system's folder (docs/policy.md). A file that cannot be
     * used gives a warning, and the defaults are used. */
    const char* policy;
    int quiet; /* 1: writes no warnings to stderr; see waywiser_context_warnings() */
    /* Seconds for which the threads of a copy spin after it, up to 1; 0: they sleep at once. Each
     * uses a CPU meanwhile. Copies of 1 to 64 MiB between pageable memory and a GPU that follow are
     * faster. */
    double spin_seconds;
    /* The CPUs and the NUMA nodes on which threads of the context run, of those that the calling
     * thread may use; both: CPUs that are in both. NULL: all of them. WAYWISER_INVALID if none is
     * left, or if there is no such node. The default of `threads` is their number. Staging memory
     * on the host is at nodes that have one of the CPUs, as if the process were bound to them. A
     * thread of the program that works on its own copy stays where it is. */
    const int* cpus;
    size_t cpu_count;
    const int* numa_nodes;
    size_t numa_node_count;
    /* Receives each warning of the context instead of stderr, also with `quiet`: one line without a
     * line feed, valid during the call. A thread of the context calls it, for one warning at a time,
     * with no lock held. It may call the library, but not release the context, and must not throw.
     * Warnings of waywiser_context_create() have been received when that returns. It is not called
     * after waywiser_context_release() has returned, which waits for it. In exit(), warnings go to
     * stderr unless `quiet` is set, and a call in progress goes on. */
    void (*log)(void* data, const char* line);
    void* log_data; /* the first argument of `log` */
} waywiser_options;

/* `options` may be NULL. The caller releases *context. */
WAYWISER_API waywiser_status waywiser_context_create(const waywiser_options* options,
                                                     waywiser_context** context);
/* Cancels transfers whose threads wait for the stream, waits for those that have started, and stops
 * the threads; exit() does the same. If none of them progresses on a GPU for 5 seconds, the
 * transfers fail with WAYWISER_IN_USE, and the context keeps their staging memory, streams and
 * threads for ever. So it does if lists in the program's streams have not ended 5 seconds later. A
 * call of the GPU runtime that does not return, also in exit(), is not ended. Copies made by the
 * GPU runtime (pinned memory, lists, small copies) are already in the stream and continue:
 * synchronise it before their memory is freed. Does nothing in a forked child, and for NULL.
 * Handles of its transfers stay valid, and are released on their own. Memory of
 * waywiser_pinned_alloc outlives the context. */
WAYWISER_API void waywiser_context_release(waywiser_context* context);
/* What the context uses now and may use at most. Other threads may change it meanwhile. */
typedef struct waywiser_usage {
    size_t size;                            /* set to sizeof(waywiser_usage) */
    size_t threads, most_threads;           /* copying threads */
    size_t pinned_bytes, most_pinned_bytes; /* staging memory on the host */
    size_t transfers;                       /* queued for its threads or in progress on them */
    size_t gpu_bytes, most_gpu_bytes;       /* staging memory: on the GPU that has most, on each */
    size_t streams;                         /* of the GPU runtime */
} waywiser_usage;
WAYWISER_API waywiser_status waywiser_context_usage(waywiser_context* context,
                                                    waywiser_usage* usage);

/* Writes the warnings of the context so far, one line each, to `text`, an array of `capacity`
 * characters, cut to them with the final NUL; `text` may be NULL if `capacity` is 0. *needed: size
 * of all of them with the final NUL; 1 if there are none. Each is also written to stderr once per
 * process, unless an option `quiet` or `log` is set. */
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
    WAYWISER_MIXED = 4, /* the range covers memory of several kinds, or several registrations */
    WAYWISER_FILE = 5   /* no memory: only in records of a tracer */
} waywiser_memory_kind;

typedef struct waywiser_description {
    size_t size; /* set to sizeof(waywiser_description) */
    waywiser_memory_kind kind;
    int gpu;          /* the GPU of device memory, else -1 */
    int numa;         /* node of the first page of host memory, -1 if unknown */
    void* allocation; /* start of the allocation or registration, NULL if unknown */
    size_t allocation_bytes;
    size_t registrations; /* number of registrations that the range touches */
} waywiser_description;

/* Describes [data, data + bytes): the whole range, not only its start. Reads no byte of it.
 * description->allocation is not owned. */
WAYWISER_API waywiser_status waywiser_describe(const void* data, size_t bytes,
                                               waywiser_description* description);

/* Pinned memory of `bytes` at a NUMA node (-1: the node of the calling thread), which begins at a
 * page. Independent of any context. The caller frees *data. If there is no GPU or pinning fails, the
 * memory is pageable: waywiser_describe() shows which. */
WAYWISER_API waywiser_status waywiser_pinned_alloc(size_t bytes, int numa, void** data);
/* Waits for the GPUs that may use the memory, then frees it. Does nothing for NULL. Transfers that
 * use it must have ended, or been submitted. */
WAYWISER_API void waywiser_pinned_free(void* data);

/* Page-locks memory that the program owns, for all GPUs and independent of any context: copies of it
 * are copies of pinned memory from now on. The pages get contents if they had none. The memory stays
 * the caller's, and must not be freed, resized or remapped before waywiser_unregister(). Fails with
 * WAYWISER_INVALID if a part of it is registered, pinned otherwise, of a GPU or not mapped, for NULL
 * and for 0 bytes; with WAYWISER_UNSUPPORTED without a GPU; with WAYWISER_OUT_OF_MEMORY if so much
 * cannot be pinned. */
WAYWISER_API waywiser_status waywiser_register(void* data, size_t bytes);
/* Waits for the GPUs that may use the memory, then unlocks it. `data` is the address that was
 * registered, else it fails with WAYWISER_INVALID. Transfers that use it must have ended, or been
 * submitted. Fails with WAYWISER_GPU, and the memory stays registered, if it is unknown whether a
 * GPU uses it: while a stream is captured, say. In a forked child it does nothing for registrations
 * of the parent. */
WAYWISER_API waywiser_status waywiser_unregister(void* data);

/* --- transfers --------------------------------------------------------------------------- */

/* The handle of a transfer in progress. It does not own the memory of the two sides. */
typedef struct waywiser_transfer waywiser_transfer;

/* What one operation of a transfer does. Later versions may have more of these. */
typedef enum waywiser_operation_kind {
    WAYWISER_COPY = 0,   /* copies `bytes` from `from` to `to` */
    WAYWISER_BLOCKS = 1, /* copies `count` blocks of `bytes` each, see waywiser_copy_blocks() */
    WAYWISER_READ = 2,   /* reads `bytes` from `offset` of `file` to `to`, see waywiser_read() */
    WAYWISER_WRITE = 3   /* writes `bytes` from `from` to `offset` of `file`, see waywiser_write() */
} waywiser_operation_kind;

/* One operation. Fields that its kind does not name are not read. */
typedef struct waywiser_operation {
    size_t size; /* set to sizeof(waywiser_operation): the same in all entries of an array */
    waywiser_operation_kind kind;
    uint32_t write_flags; /* WAYWISER_WRITE_TRUNCATE, WAYWISER_WRITE_SYNC */
    void* to;
    const void* from;
    size_t bytes;
    /* Of WAYWISER_BLOCKS: the arrays begin at `to` and `from`. */
    size_t to_stride, to_blocks, from_stride, from_blocks;
    const int64_t *to_index, *from_index;
    size_t count;
    /* Of WAYWISER_READ and WAYWISER_WRITE. */
    int file;
    uint64_t offset;
} waywiser_operation;

/* The transfer is ordered in the stream like cudaMemcpyAsync: later work in the stream starts after
 * it. The call returns when the host's side of pageable memory and of files is free. */
#define WAYWISER_IN_STREAM 1u
/* A snapshot, see waywiser_snapshot(): only WAYWISER_COPY and WAYWISER_BLOCKS from one GPU. */
#define WAYWISER_SNAPSHOT 2u

/* Moves `count` operations as one transfer, in any order among themselves: what one writes no other
 * one may read or write, or the call fails with WAYWISER_INVALID (bytes of files are not compared).
 * It starts after the work that is in the stream at the call. `flags` is 0, WAYWISER_IN_STREAM or
 * WAYWISER_SNAPSHOT. Without WAYWISER_IN_STREAM the call returns at once, and *transfer is the handle
 * of all operations: their memory and files are in use until it has ended. With it *transfer is
 * NULL, and `transfer` may be NULL. If one operation fails, the others may have been made. */
WAYWISER_API waywiser_status waywiser_submit(waywiser_context* context,
                                             const waywiser_operation* operations, size_t count,
                                             void* stream, uint32_t flags,
                                             waywiser_transfer** transfer);
/* Moves the same, and returns when the host's side of all operations is free: host destinations are
 * filled, host sources and files can be reused, also if the memory is pinned. A GPU's side is free
 * when the stream has completed its work, or at once if *ended is 1; so it returns at once if both
 * sides are on GPUs. A copy of less than 8 MiB has always ended, unless it was only recorded in a
 * graph.
 *
 * Waits for the stream, for GPUs and for other threads at most `timeout` seconds (negative: without
 * limit). What the calling thread copies at that moment it completes, some MiB at most, and a call
 * of the GPU runtime is not cut short: that of a small copy of pageable memory returns when the
 * bytes have arrived. *transfer is NULL if the host's side is free by then. Else it is the handle of
 * the transfer, which goes on: both sides are in use until it has ended. While the stream is
 * captured, a copy of device and pinned memory is recorded and not waited for.
 *
 * *ended and *moved (bytes of files that were moved, 0 if the transfer goes on) may be NULL. */
WAYWISER_API waywiser_status waywiser_submit_and_wait(
    waywiser_context* context, const waywiser_operation* operations, size_t count, void* stream,
    double timeout, int* ended, size_t* moved, waywiser_transfer** transfer);

/* Operations that are submitted again and again. Their lists are checked and their memory is looked
 * up once. */
typedef struct waywiser_plan waywiser_plan;
/* Checks and keeps `count` operations. Index arrays are copied. All memory must stay allocated, and
 * registered as it is, until the plan is released. The caller releases *plan. */
WAYWISER_API waywiser_status waywiser_plan_create(waywiser_context* context,
                                                  const waywiser_operation* operations,
                                                  size_t count, waywiser_plan** plan);
/* Like waywiser_submit() and waywiser_submit_and_wait() with the operations of the plan. Threads may
 * submit one plan at once, if its operations may run at once. */
WAYWISER_API waywiser_status waywiser_plan_submit(waywiser_plan* plan, void* stream, uint32_t flags,
                                                  waywiser_transfer** transfer);
WAYWISER_API waywiser_status waywiser_plan_submit_and_wait(waywiser_plan* plan, void* stream,
                                                           double timeout, int* ended,
                                                           size_t* moved,
                                                           waywiser_transfer** transfer);
/* Frees the plan; its transfers continue. Does nothing for NULL. */
WAYWISER_API void waywiser_plan_release(waywiser_plan* plan);

/* The following functions submit one operation. Those whose name ends in _and_wait are as
 * waywiser_submit_and_wait(); others with a `transfer` that is NULL as waywiser_submit() with
 * WAYWISER_IN_STREAM, else without it. */

/* Copies `bytes` with the semantics of cudaMemcpyAsync: ordered in the stream. With pageable memory
 * it returns when the host's part is done: a destination is filled, a source can be reused. Pinned
 * and GPU memory are in use until the stream has completed the copy. The ranges must not overlap.
 */
WAYWISER_API waywiser_status waywiser_copy(waywiser_context* context, void* to, const void* from,
                                           size_t bytes, void* stream);
WAYWISER_API waywiser_status waywiser_copy_and_wait(waywiser_context* context, void* to,
                                                    const void* from, size_t bytes, void* stream,
                                                    double timeout, int* ended,
                                                    waywiser_transfer** transfer);
/* Returns at once, but in a plain context the GPU runtime waits for the stream if memory is pageable.
 * The copy starts after the work that is in the stream at the call; later work in the stream may
 * start before it has ended. Both sides are in use until the transfer has ended. */
WAYWISER_API waywiser_status waywiser_copy_async(waywiser_context* context, void* to,
                                                 const void* from, size_t bytes, void* stream,
                                                 waywiser_transfer** transfer);

/* Copies `count` pieces: sizes[i] bytes from from[i] to to[i], in any order. Fails with
 * WAYWISER_INVALID if a destination overlaps another destination or a source. With a handle it
 * returns at once, unless the GPU runtime blocks in its copies of managed memory. The three arrays
 * have `count` entries each. */
WAYWISER_API waywiser_status waywiser_copy_batch(waywiser_context* context, void* const* to,
                                                 const void* const* from, const size_t* sizes,
                                                 size_t count, void* stream,
                                                 waywiser_transfer** transfer);
/* Pieces in pageable memory, unless they are few and short, are moved by the calling thread too. */
WAYWISER_API waywiser_status waywiser_copy_batch_and_wait(
    waywiser_context* context, void* const* to, const void* const* from, const size_t* sizes,
    size_t count, void* stream, double timeout, int* ended, waywiser_transfer** transfer);
/* Copies `count` blocks of `block` bytes: from `from + from_index[i] * from_stride` to
 * `to + to_index[i] * to_stride`. `to_blocks` and `from_blocks` are the numbers of blocks in the
 * two arrays. Fails with WAYWISER_INVALID if an index is out of range or occurs twice in
 * `to_index`; of more than 32,768 blocks, some may have been copied then. */
WAYWISER_API waywiser_status waywiser_copy_blocks(
    waywiser_context* context, void* to, size_t to_stride, size_t to_blocks, const void* from,
    size_t from_stride, size_t from_blocks, size_t block, const int64_t* to_index,
    const int64_t* from_index, size_t count, void* stream, waywiser_transfer** transfer);
WAYWISER_API waywiser_status waywiser_copy_blocks_and_wait(
    waywiser_context* context, void* to, size_t to_stride, size_t to_blocks, const void* from,
    size_t from_stride, size_t from_blocks, size_t block, const int64_t* to_index,
    const int64_t* from_index, size_t count, void* stream, double timeout, int* ended,
    waywiser_transfer** transfer);

/* Copies `count` pieces of one GPU's memory to the host beside the stream: the copies start after
 * the work that is in the stream at the call, and later work in it does not wait for them. It must
 * not change a source before waywiser_transfer_wait_source_read() has ordered it. Into pinned
 * memory everything is submitted at once. Into pageable memory threads submit the copies when the
 * stream has come this far, as fast as the staging memory allows. */
WAYWISER_API waywiser_status waywiser_snapshot(waywiser_context* context, void* const* to,
                                               const void* const* from, const size_t* sizes,
                                               size_t count, void* stream,
                                               waywiser_transfer** transfer);

/* Reads up to `bytes` from `offset` of an open file, whose own offset is neither used nor moved,
 * into any memory; fewer only at the end of the file. If `transfer` is NULL, it returns when all
 * bytes are read and their copies are in the stream, and sets *moved. Else it returns at once, and
 * the file must stay open until the transfer ends; `moved` is not used then, and may be NULL. Fails
 * with WAYWISER_IO for a file that cannot be read at an offset. */
WAYWISER_API waywiser_status waywiser_read(waywiser_context* context, int file, uint64_t offset,
                                           void* to, size_t bytes, void* stream, size_t* moved,
                                           waywiser_transfer** transfer);
WAYWISER_API waywiser_status waywiser_read_and_wait(waywiser_context* context, int file,
                                                    uint64_t offset, void* to, size_t bytes,
                                                    void* stream, double timeout, int* ended, size_t* moved,
                                                    waywiser_transfer** transfer);

/* What a write does when the file has its bytes: flags for waywiser_write(). */
#define WAYWISER_WRITE_TRUNCATE 1u /* the file ends with the last byte written */
/* The bytes have reached the disk (fdatasync). They are written with direct I/O if the file system
 * allows it. A descriptor that is open with O_DIRECT is written so without this flag too. */
#define WAYWISER_WRITE_SYNC 2u
/* Writes `bytes` of any memory to an open file at `offset`; without a handle it returns when the
 * file has them, not when a disk has, unless `flags` ask for that. With a handle, the flags take
 * effect before the transfer ends. The file must not be open for appending: the system ignores
 * offsets then. */
WAYWISER_API waywiser_status waywiser_write(waywiser_context* context, int file, uint64_t offset,
                                            const void* from, size_t bytes, uint32_t flags,
                                            void* stream, size_t* moved,
                                            waywiser_transfer** transfer);
WAYWISER_API waywiser_status waywiser_write_and_wait(waywiser_context* context, int file,
                                                     uint64_t offset, const void* from,
                                                     size_t bytes, uint32_t flags, void* stream,
                                                     double timeout, int* ended, size_t* moved,
                                                     waywiser_transfer** transfer);

/* Marks the end of the work in the stream: a transfer of no bytes that ends when the stream reaches
 * it. waywiser_transfer_wait() orders another stream after it. *transfer is NULL if there is
 * nothing to wait for: on a machine without a GPU, or while the stream is captured. */
WAYWISER_API waywiser_status waywiser_mark(waywiser_context* context, void* stream,
                                           waywiser_transfer** transfer);

/* Returns 1 if the transfer has ended, in success or failure, else 0. */
WAYWISER_API int waywiser_transfer_done(waywiser_transfer* transfer);
/* Waits until the transfer has ended, at most `timeout` seconds (negative: without limit). Returns
 * the transfer's own status. *moved: bytes that have arrived, also after a failure; may be NULL. */
WAYWISER_API waywiser_status waywiser_transfer_result(waywiser_transfer* transfer, double timeout,
                                                      size_t* moved);

/* What is known of a transfer at one moment. */
typedef struct waywiser_transfer_info {
    size_t size;            /* set to sizeof(waywiser_transfer_info) */
    int ended;              /* 1 if it has ended, in success or failure */
    waywiser_status status; /* its own status if it has ended, else WAYWISER_OK */
    int error;              /* errno if the status is WAYWISER_IO, else 0 */
    size_t moved;           /* bytes that have arrived */
    size_t bytes;           /* bytes of the whole transfer */
    char message[256];      /* one line if it has failed, cut to this size; else "" */
} waywiser_transfer_info;
/* Fills *info without waiting. The status that it returns is that of the query. */
WAYWISER_API waywiser_status waywiser_transfer_query(waywiser_transfer* transfer,
                                                     waywiser_transfer_info* info);
/* Ends the transfer early, and returns at once: what no thread has begun is not moved, and the
 * transfer's status will be WAYWISER_CANCELLED. Some bytes may have arrived. Both sides are in use
 * until it has ended. Copies that are in a stream of the GPU runtime are made all the same; if
 * nothing else is left of the transfer, it ends as without this call. */
WAYWISER_API waywiser_status waywiser_transfer_cancel(waywiser_transfer* transfer);
/* Waits until at least one of `count` transfers has ended, at most `timeout` seconds (negative:
 * without limit). *index: the first that has, in the order of the array; a NULL in it has ended.
 * Fails with WAYWISER_TIMEOUT if none has, and with WAYWISER_INVALID if `count` is 0. The status of
 * the transfer itself is that of waywiser_transfer_result(). */
WAYWISER_API waywiser_status waywiser_wait_any(waywiser_transfer* const* transfers, size_t count,
                                               double timeout, size_t* index);

/* Blocks the host until the last device operation is submitted, then makes the stream wait for all
 * of them. If the destination is pageable, it blocks until that is filled. Fails with
 * WAYWISER_TIMEOUT after `timeout` seconds (negative: without limit). */
WAYWISER_API waywiser_status waywiser_transfer_wait(waywiser_transfer* transfer, void* stream,
                                                    double timeout);
/* Makes the stream wait until the transfer has read its source, so that later work in the stream
 * may change it; the destination may not be filled yet. If the library has submitted all reads,
 * this only adds a wait to the stream. Else it blocks the host until it has, because a wait for
 * what is not submitted would be none. Fails with WAYWISER_TIMEOUT after `timeout` seconds
 * (negative: without limit). */
WAYWISER_API waywiser_status waywiser_transfer_wait_source_read(waywiser_transfer* transfer,
                                                                void* stream, double timeout);
/* Returns 1 if waywiser_transfer_wait_source_read() would block the host now, else 0. */
WAYWISER_API int waywiser_transfer_source_read_pending(waywiser_transfer* transfer);
/* Writes the 8 bytes of the number 1 to the descriptor (an eventfd, say) when the transfer ends, or
 * at once if it has ended. Writes once for each call. After the write waywiser_transfer_done()
 * returns 1, and the descriptor may be closed. The write must not block. Fails with WAYWISER_IO
 * (EBADF), and writes nothing, if the descriptor is not open for writing; with WAYWISER_IO (EPIPE),
 * and without a signal, if it is a pipe or socket that nothing reads. Releasing the context
 * writes for copies of the GPU runtime that continue: waywiser_transfer_done() returns 0 then. */
WAYWISER_API waywiser_status waywiser_transfer_notify(waywiser_transfer* transfer, int descriptor);
/* Calls `callback` once when the transfer has ended, by a thread of the library, or at once by the
 * calling thread if it has ended. The handle may have been released. `info` is valid during the
 * call. The callback must not throw, nor wait for other transfers of the context, nor release the
 * context: its thread is needed for them. It may submit. Copies of the GPU runtime that continue
 * when their context is released are reported with `ended` 0. */
WAYWISER_API waywiser_status waywiser_transfer_on_end(
    waywiser_transfer* transfer, void (*callback)(void* data, const waywiser_transfer_info* info),
    void* data);
/* Frees the handle; the transfer continues, and both sides stay in use until it has ended. Does
 * nothing for NULL. */
WAYWISER_API void waywiser_transfer_release(waywiser_transfer* transfer);

/* --- tracing ----------------------------------------------------------------------------- */

/* What a call of this interface moves, for a tracer. */
typedef struct waywiser_trace_record {
    size_t size;     /* bytes that this version of the library fills */
    uint64_t id;     /* of the transfer; ids ascend in the order of the calls */
    uint64_t thread; /* of the operating system, that has made the call */
    /* CLOCK_MONOTONIC in nanoseconds: before the call, when it has returned, and when the transfer
     * has ended. The last two are 0 at the beginning. */
    uint64_t called, returned, ended;
    waywiser_operation_kind kind; /* of the first operation */
    size_t operations;            /* pieces and blocks count as one operation for each list */
    size_t bytes;                 /* of all operations */
    /* Memory of the first operation; -1 as GPU of host memory and of files. */
    waywiser_memory_kind to_kind, from_kind;
    int to_gpu, from_gpu;
    const void *to, *from;  /* first addresses, NULL for a file */
    void* stream;
    uint32_t flags;         /* of waywiser_submit() */
    int waits;              /* 1: the call waits for the host's side */
    waywiser_status status; /* of the transfer; WAYWISER_OK at the beginning */
    size_t moved;           /* bytes that have arrived */
} waywiser_trace_record;

/* A library that traces the transfers of this process. */
typedef struct waywiser_tracer {
    size_t size; /* set to sizeof(waywiser_tracer) */
    /* Called by the calling thread before anything else is done: a stack trace shows the program. */
    void (*begin)(void* data, const waywiser_trace_record* record);
    /* Called once for each begin() when the transfer has ended, in success or failure: by a thread
     * of the library, or by the calling thread. May be called after the tracer was removed. */
    void (*end)(void* data, const waywiser_trace_record* record);
    void* data; /* must stay valid until all transfers that have begun have ended */
} waywiser_tracer;
/* Calls `tracer` for each transfer that begins from now on, in all contexts; NULL: none. There is
 * one at a time: fails with WAYWISER_INVALID if another one is set. Its functions must not throw,
 * and must not call this interface. While none is set, a call costs a load and a branch more. For
 * a transfer that is ordered in a stream, an event is added to the stream to know its end. */
WAYWISER_API waywiser_status waywiser_set_tracer(const waywiser_tracer* tracer);

/* --- diagnostics ------------------------------------------------------------------------- */

/* Writes one line that describes how a copy would be done to `text`, an array of `capacity`
 * characters, cut to them with its final NUL. Moves nothing. */
WAYWISER_API waywiser_status waywiser_explain(waywiser_context* context, const void* to,
                                              const void* from, size_t bytes, char* text,
                                              size_t capacity);
/* By what bytes are moved. waywiser_copy_method() returns one of the first three: to it, a copy by
 * threads that spin or with relays is chunked too. Later versions may have more of these at the
 * end.
 */
typedef enum waywiser_method {
    WAYWISER_METHOD_NONE = 0,    /* there is nothing to copy */
    WAYWISER_METHOD_PLAIN = 1,   /* by calls of the GPU runtime, or by the calling thread alone */
    WAYWISER_METHOD_CHUNKED = 2, /* by threads of the library, in chunks */
    WAYWISER_METHOD_RING = 3,    /* by threads that spin after a copy (spin_seconds) */
    WAYWISER_METHOD_RELAYED = 4, /* in chunks, some over the links of other GPUs (relays) */
    /* Lists in the caller's stream: by a copy of the GPU runtime for each piece, by its batched
     * copies, by a kernel, or by a kernel and copies through staging memory of the GPU. */
    WAYWISER_METHOD_LIST_COPIES = 5,
    WAYWISER_METHOD_LIST_BATCH = 6,
    WAYWISER_METHOD_LIST_KERNEL = 7,
    WAYWISER_METHOD_LIST_PIPELINE = 8,
    WAYWISER_METHOD_LIST_STAGED = 9,      /* lists by threads of the library */
    WAYWISER_METHOD_SNAPSHOT = 10,        /* snapshots by copies of the GPU runtime */
    WAYWISER_METHOD_SNAPSHOT_STAGED = 11, /* snapshots by threads of the library */
    WAYWISER_METHOD_READ = 12,            /* from a file */
    WAYWISER_METHOD_WRITE = 13            /* to a file */
} waywiser_method;
/* The name of a method, "list_kernel", a constant text; NULL if this library has no such method. */
WAYWISER_API const char* waywiser_method_name(waywiser_method method);
/* Says how waywiser_copy() would copy, as waywiser_explain() does in words. Copies nothing. */
WAYWISER_API waywiser_status waywiser_copy_method(waywiser_context* context, const void* to,
                                                  const void* from, size_t bytes,
                                                  waywiser_method* method);
/* Writes how waywiser_copy_batch() or waywiser_copy_blocks() would copy the same list: a line for
 * each method that moves some of its pieces, joined by line feeds. Assumes that the stream is one
 * of the list's GPU and not captured, and that all staging memory is free. Moves nothing, and fails
 * for the lists that the two reject. `text` is an array of `capacity` characters, to which the text
 * is cut with the final NUL; it may be NULL if `capacity` is 0. *needed: size of the whole text
 * including its NUL. */
WAYWISER_API waywiser_status waywiser_explain_batch(waywiser_context* context, void* const* to,
                                                    const void* const* from, const size_t* sizes,
                                                    size_t count, char* text, size_t capacity,
                                                    size_t* needed);
WAYWISER_API waywiser_status waywiser_explain_blocks(
    waywiser_context* context, void* to, size_t to_stride, size_t to_blocks, const void* from,
    size_t from_stride, size_t from_blocks, size_t block, const int64_t* to_index,
    const int64_t* from_index, size_t count, char* text, size_t capacity, size_t* needed);
/* What one method has moved since the context was created. The fields only grow. Transfers that run
 * meanwhile may be in some of them already. Copies that are only recorded in a graph are not
 * counted, nor are calls that fail before a method has started. */
typedef struct waywiser_method_stats {
    size_t size; /* set to sizeof(waywiser_method_stats) */
    /* By calls of the GPU runtime (PLAIN, LIST_COPIES to LIST_PIPELINE, SNAPSHOT): that were
     * submitted. By threads of the library, and of files: that have ended. Also those that have
     * failed or were cancelled. A list counts once for each method that moves some of it, and for
     * each piece if the pieces are copied one by one. */
    uint64_t transfers;
    uint64_t bytes; /* that were submitted or have arrived, also before a failure */
    /* Sum over the transfers. By calls of the GPU runtime: the host's time in these calls, which
     * can return before the bytes have arrived. Else from the moment when the transfer could start,
     * after the work in its stream, to its end. */
    double seconds;
    uint64_t failures;      /* transfers that have failed */
    uint64_t cancellations; /* transfers that were cancelled before their end */
} waywiser_method_stats;
/* Fails with WAYWISER_INVALID for a method that has no name, and for WAYWISER_METHOD_NONE. */
WAYWISER_API waywiser_status waywiser_context_method_stats(waywiser_context* context,
                                                           waywiser_method method,
                                                           waywiser_method_stats* stats);
/* The same of all methods together, and of what they wait for. */
typedef struct waywiser_stats {
    size_t size; /* set to sizeof(waywiser_stats) */
    uint64_t transfers, bytes, failures, cancellations;
    /* How often, and in all how long, a transfer could not begin because no staging memory was
     * free. Transfers that wait at the same time count each. */
    uint64_t staging_waits;
    double staging_wait_seconds;
    uint64_t wake_ups;        /* how often a thread that slept has looked for work again */
    size_t peak_pinned_bytes; /* the most that waywiser_usage.pinned_bytes has been */
} waywiser_stats;
WAYWISER_API waywiser_status waywiser_context_stats(waywiser_context* context,
                                                    waywiser_stats* stats);
/* Writes the discovered machine as JSON to `text`, an array of `capacity` characters, cut to them
 * with the final NUL; `text` may be NULL if `capacity` is 0. *needed: size of the whole text
 * including its NUL. */
WAYWISER_API waywiser_status waywiser_machine(char* text, size_t capacity, size_t* needed);

#if defined(__cplusplus)
}
#endif
#endif
