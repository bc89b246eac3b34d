// A transfer library of the tests: it has the hook for tracers, and copies in two chunks, the first
// by the calling thread and the second by a thread of its own.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <thread>

#include "fake_tools.hpp"
#include "waywiser/transfer.h"

namespace fake::library {

namespace {

const waywiser_tracer* tracer = nullptr;
std::uint64_t last_id = 0;

std::uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

void copy_chunk(char* to, const char* from, std::uint64_t bytes) {
    cudaMemcpyAsync(to, from, bytes, 1, nullptr);
}

}  // namespace

extern "C" {

waywiser_status waywiser_set_tracer(const waywiser_tracer* own) {
    if (own != nullptr && tracer != nullptr) return WAYWISER_INVALID;
    tracer = own;
    return WAYWISER_OK;
}

void fake_library_copy(char* to, const char* from, std::uint64_t bytes) {
    waywiser_trace_record record{};
    record.size = sizeof record;
    record.id = ++last_id;
    record.thread = static_cast<std::uint64_t>(syscall(SYS_gettid));
    record.called = now();
    record.kind = WAYWISER_COPY;
    record.operations = 1;
    record.bytes = bytes;
    record.to_kind = WAYWISER_DEVICE;
    record.from_kind = WAYWISER_PAGEABLE;
    record.from_gpu = -1;
    record.to = to;
    record.from = from;
    record.waits = 1;
    if (tracer != nullptr) tracer->begin(tracer->data, &record);
    copy_chunk(to, from, bytes / 2);
    std::thread([&] { copy_chunk(to + bytes / 2, from + bytes / 2, bytes / 2); }).join();
    record.returned = record.ended = now();
    record.moved = bytes;
    if (tracer != nullptr) tracer->end(tracer->data, &record);
}
}

}  // namespace fake::library
