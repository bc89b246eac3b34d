/* A program that was compiled with the first header of interface 2: every kind of call, with host
 * and pinned memory and with a file. Ends with 0 and prints "all calls work". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transfer_2.h"

#define BYTES ((size_t)9 << 20)

static void check(int holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, waywiser_last_error());
    exit(1);
}

static void end(waywiser_transfer* transfer, size_t bytes, const char* what) {
    size_t moved = 0;
    check(waywiser_transfer_result(transfer, -1, &moved) == WAYWISER_OK && moved == bytes, what);
    check(waywiser_transfer_done(transfer) == 1, what);
    waywiser_transfer_release(transfer);
}

static void check_structs(waywiser_context* context, const void* pinned) {
    waywiser_usage usage = {0};
    usage.size = sizeof usage;
    check(waywiser_context_usage(context, &usage) == WAYWISER_OK, "usage");
    check(usage.size == sizeof usage && usage.most_threads == 2, "fields of usage");
    waywiser_description found = {0};
    found.size = sizeof found;
    check(waywiser_describe(pinned, BYTES, &found) == WAYWISER_OK, "describe");
    check(found.kind == WAYWISER_PINNED && found.gpu == -1 && found.registrations == 1,
          "fields of a description");
    char text[256];
    size_t needed = 0;
    check(waywiser_context_warnings(context, text, sizeof text, &needed) == WAYWISER_OK,
          "warnings");
    check(waywiser_machine(NULL, 0, &needed) == WAYWISER_OK && needed > 2, "machine");
    check(waywiser_explain(context, pinned, text, 1, text, sizeof text) == WAYWISER_OK, "explain");
}

static void copy(waywiser_context* context, char* to, const char* from) {
    waywiser_transfer* transfer = NULL;
    memset(to, 0, BYTES);
    check(waywiser_copy(context, to, from, BYTES, WAYWISER_NO_STREAM) == WAYWISER_OK, "copy");
    check(memcmp(to, from, BYTES) == 0, "bytes of copy");
    memset(to, 0, BYTES);
    int ended = 0;
    check(waywiser_copy_and_wait(context, to, from, BYTES, NULL, 60, &ended, &transfer) ==
              WAYWISER_OK,
          "copy_and_wait");
    check(transfer == NULL && ended == 1 && memcmp(to, from, BYTES) == 0,
          "bytes of copy_and_wait");
    check(waywiser_copy_async(context, to, from, BYTES, NULL, &transfer) == WAYWISER_OK, "async");
    check(waywiser_transfer_wait(transfer, WAYWISER_LEGACY_STREAM_OF(0), -1) == WAYWISER_OK,
          "wait");
    end(transfer, BYTES, "copy_async");
    check(waywiser_copy(context, to, to + 1, 10, NULL) == WAYWISER_INVALID, "an overlap");
    check(strstr(waywiser_last_error(), "overlap") != NULL, "its message");
}

static void copy_lists(waywiser_context* context, char* to, const char* from) {
    waywiser_transfer* transfer = NULL;
    void* const into[] = {to, to + 4096};
    const void* const out[] = {from + 4096, from};
    const size_t sizes[] = {4096, 100};
    check(waywiser_copy_batch(context, into, out, sizes, 2, NULL, &transfer) == WAYWISER_OK,
          "batch");
    end(transfer, 4196, "copy_batch");
    check(memcmp(to, from + 4096, 4096) == 0, "bytes of copy_batch");
    const int64_t to_index[] = {0, 3}, from_index[] = {5, 1};
    check(waywiser_copy_blocks(context, to, 64, 8, from, 64, 8, 64, to_index, from_index, 2, NULL,
                               NULL) == WAYWISER_OK,
          "copy_blocks");
    check(memcmp(to, from + 5 * 64, 64) == 0, "bytes of copy_blocks");
}

static void move_file(waywiser_context* context, char* to, const char* from) {
    waywiser_transfer* transfer = NULL;
    size_t moved = 0;
    const int file = fileno(tmpfile());
    check(waywiser_write(context, file, 5, from, BYTES, WAYWISER_WRITE_TRUNCATE, NULL, &moved,
                         NULL) == WAYWISER_OK,
          "write");
    check(moved == BYTES, "bytes of write");
    check(waywiser_read(context, file, 5, to, BYTES, NULL, NULL, &transfer) == WAYWISER_OK, "read");
    int ends[2];
    char one[8];
    check(pipe(ends) == 0, "pipe");
    check(waywiser_transfer_notify(transfer, ends[1]) == WAYWISER_OK, "notify");
    check(read(ends[0], one, sizeof one) == sizeof one && one[0] == 1, "what notify writes");
    end(transfer, BYTES, "read");
    check(memcmp(to, from, BYTES) == 0, "bytes of read");
    check(waywiser_read(context, -1, 0, to, 1, NULL, &moved, NULL) == WAYWISER_IO, "a closed file");
    check(waywiser_last_errno() == 9, "its errno");
}

static void add_end(void* data, const waywiser_transfer_info* info) {
    *(size_t*)data += info->ended == 1 ? info->moved : 0;
}

static void submit(waywiser_context* context, char* to, const char* from) {
    waywiser_operation two[2] = {{0}};
    for (int i = 0; i < 2; ++i) {
        two[i].size = sizeof two[i];
        two[i].kind = WAYWISER_COPY;
        two[i].to = to + i * 4096;
        two[i].from = from + (1 - i) * 4096;
        two[i].bytes = 4096;
    }
    waywiser_transfer* transfer = NULL;
    check(waywiser_submit(context, two, 2, NULL, 0, &transfer) == WAYWISER_OK, "submit");
    size_t first = 1;
    check(waywiser_wait_any(&transfer, 1, 60, &first) == WAYWISER_OK && first == 0, "wait_any");
    waywiser_transfer_info info = {0};
    info.size = sizeof info;
    check(waywiser_transfer_query(transfer, &info) == WAYWISER_OK, "query");
    check(info.ended == 1 && info.status == WAYWISER_OK && info.moved == 8192, "its fields");
    size_t moved = 0;
    check(waywiser_transfer_on_end(transfer, add_end, &moved) == WAYWISER_OK, "on_end");
    check(moved == 8192 && waywiser_transfer_cancel(transfer) == WAYWISER_OK, "cancel");
    end(transfer, 8192, "submit");
    waywiser_plan* plan = NULL;
    check(waywiser_plan_create(context, two, 2, &plan) == WAYWISER_OK, "plan_create");
    check(waywiser_plan_submit(plan, NULL, WAYWISER_IN_STREAM, NULL) == WAYWISER_OK, "plan_submit");
    waywiser_plan_release(plan);
    check(memcmp(to, from + 4096, 4096) == 0, "bytes of submit");
    check(waywiser_set_tracer(NULL) == WAYWISER_OK, "set_tracer");
    waywiser_stats stats = {0};
    stats.size = sizeof stats;
    check(waywiser_context_stats(context, &stats) == WAYWISER_OK, "stats");
    char* const own = malloc(8192);
    check(waywiser_register(own, 8192) == WAYWISER_OK, "register");
    check(waywiser_unregister(own) == WAYWISER_OK, "unregister");
    free(own);
    check(strcmp(waywiser_status_name(WAYWISER_TIMEOUT), "WAYWISER_TIMEOUT") == 0, "a name");
}

int main(void) {
    check(waywiser_transfer_abi() == WAYWISER_TRANSFER_ABI, "the number of the interface");
    waywiser_options options = {0};
    options.size = sizeof options;
    options.threads = 2;
    options.policy = "off";
    waywiser_context* context = NULL;
    check(waywiser_context_create(&options, &context) == WAYWISER_OK, "context_create");
    check(waywiser_require_gpu(context) == WAYWISER_OK, "require_gpu");
    void* pinned = NULL;
    check(waywiser_pinned_alloc(BYTES, -1, &pinned) == WAYWISER_OK, "pinned_alloc");
    char* const from = malloc(BYTES);
    for (size_t i = 0; i < BYTES; ++i) from[i] = (char)(i * 7 + (i >> 12));
    check_structs(context, pinned);
    copy(context, pinned, from);
    copy_lists(context, pinned, from);
    move_file(context, pinned, from);
    submit(context, pinned, from);
    waywiser_transfer* mark = NULL;
    check(waywiser_mark(context, WAYWISER_LEGACY_STREAM_OF(0), &mark) == WAYWISER_OK, "mark");
    end(mark, 0, "mark");
    waywiser_pinned_free(pinned);
    waywiser_context_release(context);
    free(from);
    puts("all calls work");
    return 0;
}
