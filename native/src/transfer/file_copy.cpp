#include "transfer/file_copy.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "transfer/byte_text.hpp"
#include "transfer/calling_thread.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/ordering.hpp"
#include "transfer/profiler.hpp"
#include "transfer/side.hpp"

namespace waywiser::transfer {
namespace {

struct FileCall {
    bool reads = true;
    WriteEnd end{};  // of a write
};

struct FileCopy {
    bool reads = true;
    std::shared_ptr<Job> job;
    Ordering order;
    bool to_gpu = false;  // GPU memory is the destination
};

void check_end(const char* call, std::uint64_t offset, std::size_t bytes) {
    constexpr std::uint64_t kLastOffset = std::numeric_limits<std::int64_t>::max();
    if (offset <= kLastOffset && bytes <= kLastOffset - offset) return;
    throw InvalidCopy(std::string(call) + ": " + std::to_string(bytes) + " bytes from offset " +
                      std::to_string(offset) +
                      " go past what a file can have (2^63 - 1): pass a smaller offset");
}

Side file_memory(Engine& engine, void* data, std::size_t bytes) {
    Side side = engine.machine().gpus.empty() ? Side{.end = Endpoint::host(data, false)}
                                              : side_of(data, bytes);
    if (side.managed) side.end = Endpoint::host(data, false);  // CPUs can access it
    return side;
}

FileCopy prepare_file(Engine& engine, const FileCall& call, const FileRange& range, void* data,
                      std::size_t bytes, const CallerStream& stream) {
    const bool reads = call.reads;
    check_end(reads ? "read" : "write", range.offset, bytes);
    check_range(data, bytes, reads ? "read" : "write", reads ? "to" : "from");
    const Side memory = file_memory(engine, data, bytes);
    FileCopy made{.reads = reads,
                  .job = nullptr,
                  .order = ordering(engine, stream, memory.end.gpu),
                  .to_gpu = reads && memory.end.gpu >= 0};
    if (made.order.capturing) {
        throw NotSupported(
            "the stream is being captured: files cannot be read or written then; do it before the "
            "capture");
    }
    const Endpoint file = Endpoint::of_file(range.file, range.offset);
    Endpoint end = memory.end;
    if (end.kind == Endpoint::Kind::host) end.pinned = false;  // the CPU moves the bytes
    CopyShape shape = file_shape(engine, bytes, memory, reads);
    shape.truncate = call.end.truncate;
    shape.sync = call.end.sync;
    made.job =
        std::make_shared<ChunkedCopy>(engine, reads ? end : file, reads ? file : end, bytes, shape);
    return made;
}

// With the calling thread. Returns what is left of it at the deadline.
std::optional<Completion> run_file(Engine& engine, const FileCopy& copy, std::size_t& moved,
                                   const Deadline& deadline = {}) {
    const bool reads = copy.reads;
    try {
        if (!run_ordered(engine, copy.job, copy.order, deadline)) {
            return Completion(engine.shared_from_this(), copy.job);
        }
        moved = reads ? copy.job->moved_or_expected() : copy.job->moved();
    } catch (...) {
        moved = copy.job->moved();
        throw;
    }
    if (!reads) return std::nullopt;
    try {
        copy.job->rethrow();  // it has failed since; that is not the end of the file
    } catch (...) {
        moved = 0;
        if (!copy.job->wait(deadline)) return Completion(engine.shared_from_this(), copy.job);
        moved = copy.job->moved();
        throw;
    }
    return std::nullopt;
}

Completion start_file(const std::shared_ptr<Engine>& engine, const FileCopy& copy) {
    engine->start(copy.job, after(copy.order));
    return {engine, copy.job};
}

// Reads few bytes that seem to be cached into host memory with the calling thread: others would
// come too late to help, unless a policy has measured them. Returns false if it is another
// transfer, or to let that report what fails.
bool read_cached(Engine& engine, const FileCall& call, const FileRange& range, void* data,
                 std::size_t bytes, const CallerStream& stream, std::size_t& moved) {
    if (!call.reads || !stream.none || bytes >= alone_below(engine.options().threads) ||
        engine.policy() != nullptr) {
        return false;
    }
    check_end("read", range.offset, bytes);
    check_range(data, bytes, "read", "to");
    const Side memory = file_memory(engine, data, bytes);
    if (memory.end.kind != Endpoint::Kind::host) return false;
    FileEnd file(range.file);
    if (!file.has_cached_block(bytes, range.offset)) return false;
    try {
        const Statistics::Clock::time_point begun = Statistics::Clock::now();
        moved = file.read(memory.end.data, bytes, range.offset, false);
        engine.statistics().count(WAYWISER_METHOD_READ, moved, Statistics::Clock::now() - begun);
        return true;
    } catch (const FileError&) {
        return false;
    }
}

// For a profiler.
std::string text_of_call(const FileCall& call, std::size_t bytes) {
    return (call.reads ? "waywiser read " : "waywiser write ") + text_of_bytes(bytes);
}

// What is left to do for a write of no bytes.
void end_empty(const FileCall& call, const FileRange& range) {
    if (call.reads) return;
    FileEnd(range.file, Writing::cached).finish(range.offset, call.end.truncate, call.end.sync);
}

void move_file(Engine& engine, const FileCall& call, const FileRange& range, void* data,
               std::size_t bytes, const CallerStream& stream, std::size_t& moved) {
    engine.check_process();
    moved = 0;
    if (bytes == 0) return end_empty(call, range);
    const gpu::CallerState keep;
    const ProfilerRange profiled([&] { return text_of_call(call, bytes); });
    if (read_cached(engine, call, range, data, bytes, stream, moved)) return;
    run_file(engine, prepare_file(engine, call, range, data, bytes, stream), moved);
}

WaitResult move_file_and_wait(const std::shared_ptr<Engine>& engine, const FileCall& call,
                              const FileRange& range, void* data, std::size_t bytes,
                              const CallerStream& stream, const Deadline& deadline,
                              std::size_t& moved) {
    engine->check_process();
    moved = 0;
    if (bytes == 0) {
        end_empty(call, range);
        return {};
    }
    const gpu::CallerState keep;
    const ProfilerRange profiled([&] { return text_of_call(call, bytes); });
    if (read_cached(*engine, call, range, data, bytes, stream, moved)) return {};
    const FileCopy copy = prepare_file(*engine, call, range, data, bytes, stream);
    return wait_for_host(
        {.bytes = bytes,
         .order = copy.order,
         .host = {.cpus = true},
         .to_gpu = copy.to_gpu,
         .run = [&](const Deadline& end) { return run_file(*engine, copy, moved, end); },
         .start = [&] { return start_file(engine, copy); }},
        deadline);
}

Completion move_file_async(const std::shared_ptr<Engine>& engine, const FileCall& call,
                           const FileRange& range, void* data, std::size_t bytes,
                           const CallerStream& stream) {
    engine->check_process();
    if (bytes == 0) {
        end_empty(call, range);
        return Completion(0);
    }
    const gpu::CallerState keep;
    const ProfilerRange profiled([&] { return text_of_call(call, bytes); });
    return start_file(engine, prepare_file(*engine, call, range, data, bytes, stream));
}

}  // namespace

void read(Engine& engine, FileRange from, void* to, std::size_t bytes, const CallerStream& stream,
          std::size_t& moved) {
    move_file(engine, FileCall{}, from, to, bytes, stream, moved);
}

void write(Engine& engine, FileRange to, const void* from, std::size_t bytes,
           const CallerStream& stream, std::size_t& moved, WriteEnd end) {
    move_file(engine, FileCall{.reads = false, .end = end}, to, const_cast<void*>(from), bytes,
              stream, moved);
}

WaitResult read_and_wait(const std::shared_ptr<Engine>& engine, FileRange from, void* to,
                         std::size_t bytes, const CallerStream& stream, const Deadline& deadline,
                         std::size_t& moved) {
    return move_file_and_wait(engine, FileCall{}, from, to, bytes, stream, deadline, moved);
}

WaitResult write_and_wait(const std::shared_ptr<Engine>& engine, FileRange to, const void* from,
                          std::size_t bytes, const CallerStream& stream, const Deadline& deadline,
                          std::size_t& moved, WriteEnd end) {
    return move_file_and_wait(engine, FileCall{.reads = false, .end = end}, to,
                              const_cast<void*>(from), bytes, stream, deadline, moved);
}

Completion read_async(const std::shared_ptr<Engine>& engine, FileRange from, void* to,
                      std::size_t bytes, const CallerStream& stream) {
    return move_file_async(engine, FileCall{}, from, to, bytes, stream);
}

Completion write_async(const std::shared_ptr<Engine>& engine, FileRange to, const void* from,
                       std::size_t bytes, const CallerStream& stream, WriteEnd end) {
    return move_file_async(engine, FileCall{.reads = false, .end = end}, to,
                           const_cast<void*>(from), bytes, stream);
}

}  // namespace waywiser::transfer
