// The C interface: checks arguments, and converts exceptions to a status and one line.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "host/affinity.hpp"
#include "transfer/caller_stream.hpp"
#include "transfer/copy.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/describe.hpp"
#include "transfer/discover.hpp"
#include "transfer/engine.hpp"
#include "transfer/explain.hpp"
#include "transfer/file_copy.hpp"
#include "transfer/file_end.hpp"
#include "transfer/list_copy.hpp"
#include "transfer/pinned_memory.hpp"
#include "transfer/policy_file.hpp"
#include "transfer/side.hpp"
#include "transfer/snapshot.hpp"
#include "transfer/wait_for_host.hpp"
#include "waywiser/transfer.h"

using namespace waywiser;  // the whole file uses it
using transfer::CallerStream;
using transfer::Engine;

struct waywiser_context {
    std::shared_ptr<Engine> engine;
};

struct waywiser_transfer {
    std::shared_ptr<Engine> engine;
    transfer::Completion started;
};

namespace {

struct LastError {
    std::string message;
    int error = 0;
};

LastError& last_error() {
    thread_local LastError error;
    return error;
}

// See waywiser_last_ended().
bool& last_ended() {
    thread_local bool ended = false;
    return ended;
}

waywiser_status failed(waywiser_status status, const std::string& message, int error = 0) {
    try {
        last_error().message = message;
    } catch (...) {
        last_error().message.clear();
    }
    last_error().error = error;
    return status;
}

waywiser_status status_of(const gpu::Error& error) {
    switch (error.kind()) {
        case gpu::Failure::out_of_memory: return WAYWISER_OUT_OF_MEMORY;
        case gpu::Failure::sticky: return WAYWISER_GPU_LOST;
        case gpu::Failure::unavailable: return WAYWISER_UNSUPPORTED;
        case gpu::Failure::other: break;
    }
    return WAYWISER_GPU;
}

// The status of the exception being handled.
waywiser_status caught() {
    try {
        throw;
    } catch (const transfer::InvalidCopy& error) {
        return failed(WAYWISER_INVALID, error.what());
    } catch (const transfer::ForkedProcess& error) {
        return failed(WAYWISER_FORKED, error.what());
    } catch (const transfer::Cancelled& error) {
        return failed(WAYWISER_CANCELLED, error.what());
    } catch (const transfer::MemoryInUse& error) {
        return failed(WAYWISER_IN_USE, error.what());
    } catch (const transfer::FileError& error) {
        return failed(WAYWISER_IO, error.what(), error.error());
    } catch (const gpu::Error& error) {
        return failed(status_of(error), error.what());
    } catch (const NotSupported& error) {
        return failed(WAYWISER_UNSUPPORTED, error.what());
    } catch (const std::bad_alloc&) {
        return failed(WAYWISER_OUT_OF_MEMORY,
                      "host memory is exhausted: free memory, or move fewer bytes at a time");
    } catch (const std::exception& error) {
        return failed(WAYWISER_INTERNAL, error.what());
    } catch (...) {
        return failed(WAYWISER_INTERNAL, "an unknown failure");
    }
}

template <class Call>
waywiser_status guarded(const Call& call) {
    try {
        call();
        return WAYWISER_OK;
    } catch (...) {
        return caught();
    }
}

void need(bool holds, const char* message) {
    if (!holds) throw transfer::InvalidCopy(message);
}

// `argument` is its name in the header, `pass` what to pass instead.
template <class Pointer>
void need_argument(Pointer given, const char* argument, const char* pass) {
    if (given != nullptr) return;
    throw transfer::InvalidCopy(std::string("the argument ") + argument +
                                " is a null pointer: pass " + pass);
}

constexpr const char* kTransferPlace = "the address of a waywiser_transfer*";

// The sizes of structs in the first version of the header. They never change.
std::size_t first_size(const waywiser_options&) { return offsetof(waywiser_options, policy); }
std::size_t first_size(const waywiser_usage&) { return offsetof(waywiser_usage, gpu_bytes); }
std::size_t first_size(const waywiser_description&) {
    return offsetof(waywiser_description, registrations) + sizeof(std::size_t);
}

// Checks a caller's struct, which may be compiled with another version of the header: later ones
// only append fields. `name` is the struct's name in messages.
template <class Struct>
void check_size(const Struct& given, const char* name) {
    constexpr std::size_t kMost = 4096;  // a larger size was never set
    if (given.size >= first_size(given) && given.size <= kMost) return;
    throw transfer::InvalidCopy("the size of the " + std::string(name) + " is " +
                                std::to_string(given.size) + ": set it to sizeof(" + name + ")");
}

// Fills the fields that both versions of the header have, sets others of the caller to 0, and
// `size` to the bytes that are filled.
template <class Struct>
void give(Struct* to, Struct from, const char* name) {
    check_size(*to, name);
    const std::size_t whole = to->size;
    from.size = std::min(whole, sizeof from);
    std::memset(to, 0, whole);
    std::memcpy(to, &from, from.size);
}

bool plain_in_environment() {
    const char* const text = std::getenv("WAYWISER_TRANSFER");
    if (text == nullptr || *text == '\0') return false;
    if (std::strcmp(text, "plain") == 0) return true;
    throw NotSupported(std::string("the environment variable WAYWISER_TRANSFER is \"") + text +
                       "\": set it to plain, or unset it");
}

// The caller's options; those that its version of the header does not have are 0.
waywiser_options known_options(const waywiser_options* given) {
    waywiser_options known{};
    if (given != nullptr) {
        check_size(*given, "waywiser_options");
        const std::span all(reinterpret_cast<const std::byte*>(given), given->size);
        const std::size_t common = std::min(given->size, sizeof known);
        const auto unknown = all.subspan(common);
        if (std::ranges::any_of(unknown, [](std::byte one) { return one != std::byte{}; })) {
            throw NotSupported(
                "the options set a field that this version of the library (" WAYWISER_VERSION
                ") does not know: use a newer library");
        }
        std::memcpy(&known, given, common);
    }
    return known;
}

// Threads that spin use their CPUs fully.
constexpr double kMostSpinSeconds = 1;

transfer::EngineOptions engine_options(const waywiser_options& known) {
    transfer::EngineOptions options{
        .threads = known.threads,
        .pinned_bytes = known.pinned_bytes,
        .relays = {},
        .relay_bytes = known.relay_bytes,
        .max_queued_bytes = known.max_queued_bytes,
        .list_multiprocessors =
            static_cast<unsigned>(std::min<std::size_t>(known.list_multiprocessors, 1U << 16U)),
        .spin_seconds = known.spin_seconds,
        .plain = known.plain != 0 || plain_in_environment(),
        .peer_access = known.no_peer_access == 0,
        .report_warnings = known.quiet == 0};
    if (!(known.spin_seconds >= 0 && known.spin_seconds <= kMostSpinSeconds)) {
        throw transfer::InvalidCopy("spin_seconds is " + std::to_string(known.spin_seconds) +
                                    ": threads may spin for 0 to 1 second after a copy");
    }
    if (known.relay_count > 0) {
        need_argument(known.relays, "options.relays", "the numbers of relay_count GPUs");
    }
    options.relays.assign(known.relays, known.relays + known.relay_count);
    return options;
}

Machine discovered() {
    const gpu::CallerState keep;
    return transfer::discover_machine();
}

void check_relays(const std::vector<int>& relays, const Machine& machine) {
    for (const int relay : relays) {
        if (machine.gpu(relay) != nullptr) continue;
        const std::string reason = machine.gpus.empty() ? gpu::unavailable_reason() : "";
        throw transfer::InvalidCopy(
            "there is no GPU " + std::to_string(relay) + " that could relay: " +
            (reason.empty() ? "this machine has " + std::to_string(machine.gpus.size()) : reason));
    }
}

constexpr const char* kNotANumber =
    "the timeout is not a number: pass seconds, or a negative number to wait without limit";

waywiser_status too_late(const char* what, double timeout) {
    return failed(WAYWISER_TIMEOUT, "the transfer has not " + std::string(what) + " within " +
                                        std::to_string(timeout) + " s; it goes on");
}

// Orders a caller's stream after a transfer, or after its reads, by a call of `Completion`.
waywiser_status order_stream(waywiser_transfer* handle, void* stream, double timeout,
                             bool (transfer::Completion::*order)(const transfer::Engine&,
                                                                 const transfer::CallerStream&,
                                                                 const transfer::Deadline&) const) {
    if (handle == nullptr) return WAYWISER_OK;
    bool ordered = true;
    const waywiser_status status = guarded([&] {
        handle->engine->check_process();
        const gpu::CallerState keep;
        need(!std::isnan(timeout), kNotANumber);
        ordered = (handle->started.*order)(*handle->engine, CallerStream::of(stream),
                                           transfer::Deadline(timeout));
    });
    return status == WAYWISER_OK && !ordered ? too_late("been submitted", timeout) : status;
}

// Writes what fits, and returns what all of it needs with its final NUL.
std::size_t write_text(const std::string& whole, char* text, std::size_t capacity) {
    if (capacity > 0) {
        const std::size_t length = std::min(whole.size(), capacity - 1);
        std::memcpy(text, whole.data(), length);
        text[length] = '\0';
    }
    return whole.size() + 1;
}

void need_context(const waywiser_context* context) {
    need_argument(context, "context", "what waywiser_context_create gave");
}

// Starts a transfer for the caller; after a failure, *handle is null.
template <class Start>
waywiser_status begin(waywiser_context* context, waywiser_transfer** handle, const Start& start) {
    return guarded([&] {
        need_argument(handle, "transfer", kTransferPlace);
        *handle = nullptr;
        need_context(context);
        *handle = new waywiser_transfer{context->engine, start()};
    });
}

// Makes a transfer and waits; *handle is what is left of it after the timeout.
template <class Move>
waywiser_status move_and_wait(waywiser_context* context, double timeout, waywiser_transfer** handle,
                              const Move& move) {
    return guarded([&] {
        need_argument(handle, "transfer", kTransferPlace);
        *handle = nullptr;
        need_context(context);
        need(!std::isnan(timeout), kNotANumber);
        last_ended() = false;
        transfer::WaitResult waited = move();
        last_ended() = waited.ended;
        if (!waited.left) return;
        *handle = new waywiser_transfer{context->engine, std::move(*waited.left)};
    });
}

transfer::CopyList checked_list(void* const* to, const void* const* from, const size_t* sizes,
                                size_t count) {
    if (count > 0) {
        need_argument(to, "to", "an array of count destinations");
        need_argument(from, "from", "an array of count sources");
        need_argument(sizes, "sizes", "an array of count sizes");
    }
    return transfer::list_of({to, count}, {from, count}, {sizes, count});
}

// One array of blocks as a caller describes it.
struct GivenBlocks {
    const void* data;
    size_t stride;
    size_t blocks;
    const int64_t* index;
};

transfer::CopyList checked_blocks(const GivenBlocks& to, const GivenBlocks& from, size_t block,
                                  size_t count) {
    if (count > 0) {
        need_argument(to.data, "to", "the memory of the destination");
        need_argument(from.data, "from", "the memory of the source");
        need_argument(to.index, "to_index", "an array of count block numbers");
        need_argument(from.index, "from_index", "an array of count block numbers");
    }
    const auto array = [count](const GivenBlocks& given) {
        return transfer::Blocks{.data = static_cast<std::byte*>(const_cast<void*>(given.data)),
                                .stride = given.stride,
                                .blocks = given.blocks,
                                .index = {given.index, count}};
    };
    return transfer::blocks_of(array(to), array(from), block);
}

transfer::WriteEnd write_end(std::uint32_t flags) {
    constexpr std::uint32_t kAll = WAYWISER_WRITE_TRUNCATE | WAYWISER_WRITE_SYNC;
    need((flags & ~kAll) == 0, "the argument flags has bits that this library does not know");
    return {.truncate = (flags & WAYWISER_WRITE_TRUNCATE) != 0,
            .sync = (flags & WAYWISER_WRITE_SYNC) != 0};
}

// Copies a list in the way that `handle` asks for. `list` checks and describes it.
template <class List>
waywiser_status copy_list(waywiser_context* context, void* stream, waywiser_transfer** handle,
                          const List& list) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::copy_list_async(context->engine, list(), CallerStream::of(stream));
        });
    }
    return guarded([&] {
        need_context(context);
        transfer::copy_list(*context->engine, list(), CallerStream::of(stream));
    });
}

// Writes how a list would be copied. `list` checks and describes it.
template <class List>
waywiser_status explain_list(waywiser_context* context, char* text, std::size_t capacity,
                             std::size_t* needed, const List& list) {
    return guarded([&] {
        need_argument(needed, "needed", "the address of a size_t");
        *needed = 0;
        need_context(context);
        if (capacity > 0) need_argument(text, "text", "an array of capacity characters");
        *needed = write_text(transfer::explain(*context->engine, list()), text, capacity);
    });
}

}  // namespace

extern "C" {

const char* waywiser_last_error(void) { return last_error().message.c_str(); }
int waywiser_last_errno(void) { return last_error().error; }
const char* waywiser_version(void) { return WAYWISER_VERSION; }
uint32_t waywiser_transfer_abi(void) { return WAYWISER_TRANSFER_ABI; }

waywiser_status waywiser_context_create(const waywiser_options* options,
                                        waywiser_context** context) {
    return guarded([&] {
        need_argument(context, "context", "the address of a waywiser_context*");
        *context = nullptr;
        const waywiser_options known = known_options(options);
        transfer::EngineOptions chosen = engine_options(known);
        Machine machine = discovered();
        check_relays(chosen.relays, machine);
        transfer::FoundPolicy found;
        if (!chosen.plain) {
            found =
                transfer::policy_of_process(known.policy == nullptr ? "" : known.policy, machine);
        }
        auto made = std::make_unique<waywiser_context>();
        made->engine = Engine::make(std::move(machine), std::move(chosen), found);
        *context = made.release();
    });
}

void waywiser_context_release(waywiser_context* context) {
    // A child has none of the threads, and its mutexes may be locked forever.
    if (context == nullptr || context->engine->forked()) return;
    const gpu::CallerState keep;
    context->engine->stop();
    delete context;
}

waywiser_status waywiser_context_usage(waywiser_context* context, waywiser_usage* usage) {
    return guarded([&] {
        need_context(context);
        need_argument(usage, "usage", "the address of a waywiser_usage");
        context->engine->check_process();
        const Engine& engine = *context->engine;
        give(usage,
             waywiser_usage{.size = 0,
                            .threads = engine.threads(),
                            .most_threads = engine.options().threads,
                            .pinned_bytes = engine.pinned_bytes(),
                            .most_pinned_bytes = engine.options().pinned_bytes,
                            .transfers = engine.jobs(),
                            .gpu_bytes = engine.device_bytes(),
                            .most_gpu_bytes = engine.options().relay_bytes,
                            .streams = engine.streams_in_use()},
             "waywiser_usage");
    });
}

waywiser_status waywiser_context_warnings(waywiser_context* context, char* text, size_t capacity,
                                          size_t* needed) {
    return guarded([&] {
        need_context(context);
        need_argument(needed, "needed", "the address of a size_t");
        if (capacity > 0) need_argument(text, "text", "an array of capacity characters");
        context->engine->check_process();
        if (capacity == 0) {
            *needed = context->engine->warning_bytes() + 1;
            return;
        }
        std::string lines;
        for (const std::string& warning : context->engine->warnings()) lines += warning + '\n';
        *needed = write_text(lines, text, capacity);
    });
}

waywiser_status waywiser_require_gpu(waywiser_context* context) {
    return guarded([&] {
        need_context(context);
        context->engine->check_process();
        if (!context->engine->machine().gpus.empty()) return;
        const std::string reason = gpu::unavailable_reason();
        throw NotSupported("GPU memory cannot be copied: " +
                           (reason.empty() ? "this process is allowed no GPU" : reason));
    });
}

waywiser_status waywiser_describe(const void* data, size_t bytes,
                                  waywiser_description* description) {
    return guarded([&] {
        need_argument(description, "description", "the address of a waywiser_description");
        check_size(*description, "waywiser_description");
        transfer::check_range(data, bytes, "describe", "data");
        const gpu::CallerState keep;
        const auto parts = transfer::segments(data, std::max<std::size_t>(bytes, 1));
        waywiser_description found{};
        const gpu::PointerInfo& first = parts.front().info;
        found.kind =
            parts.size() > 1 ? WAYWISER_MIXED : static_cast<waywiser_memory_kind>(first.kind);
        found.gpu = first.device;
        found.numa = first.kind == gpu::PointerKind::device ? -1 : transfer::numa_of_page(data);
        found.allocation = first.start;
        found.allocation_bytes = first.bytes;
        for (const transfer::Segment& part : parts) {
            if (part.info.kind == gpu::PointerKind::pinned) ++found.registrations;
        }
        give(description, found, "waywiser_description");
    });
}

waywiser_status waywiser_pinned_alloc(size_t bytes, int numa, void** data) {
    return guarded([&] {
        need_argument(data, "data", "the address of a void*");
        *data = nullptr;
        const gpu::CallerState keep;
        *data = transfer::pinned_allocate(bytes, numa);
    });
}

void waywiser_pinned_free(void* data) {
    if (data == nullptr) return;
    const gpu::CallerState keep;
    transfer::pinned_free(data);
}

waywiser_status waywiser_copy(waywiser_context* context, void* to, const void* from, size_t bytes,
                              void* stream) {
    return guarded([&] {
        need_context(context);
        transfer::copy(*context->engine, to, from, bytes, CallerStream::of(stream));
    });
}

waywiser_status waywiser_copy_and_wait(waywiser_context* context, void* to, const void* from,
                                       size_t bytes, void* stream, double timeout,
                                       waywiser_transfer** handle) {
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::copy_and_wait(context->engine, to, from, bytes, CallerStream::of(stream),
                                       transfer::Deadline(timeout));
    });
}

int waywiser_last_ended(void) { return last_ended() ? 1 : 0; }

waywiser_status waywiser_copy_async(waywiser_context* context, void* to, const void* from,
                                    size_t bytes, void* stream, waywiser_transfer** handle) {
    return begin(context, handle, [&] {
        return transfer::copy_async(context->engine, to, from, bytes, CallerStream::of(stream));
    });
}

waywiser_status waywiser_copy_batch(waywiser_context* context, void* const* to,
                                    const void* const* from, const size_t* sizes, size_t count,
                                    void* stream, waywiser_transfer** handle) {
    return copy_list(context, stream, handle, [&] { return checked_list(to, from, sizes, count); });
}

waywiser_status waywiser_copy_batch_and_wait(waywiser_context* context, void* const* to,
                                             const void* const* from, const size_t* sizes,
                                             size_t count, void* stream, double timeout,
                                             waywiser_transfer** handle) {
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::copy_list_and_wait(context->engine, checked_list(to, from, sizes, count),
                                            CallerStream::of(stream), transfer::Deadline(timeout));
    });
}

waywiser_status waywiser_copy_blocks(waywiser_context* context, void* to, size_t to_stride,
                                     size_t to_blocks, const void* from, size_t from_stride,
                                     size_t from_blocks, size_t block, const int64_t* to_index,
                                     const int64_t* from_index, size_t count, void* stream,
                                     waywiser_transfer** handle) {
    return copy_list(context, stream, handle, [&] {
        return checked_blocks({to, to_stride, to_blocks, to_index},
                              {from, from_stride, from_blocks, from_index}, block, count);
    });
}

waywiser_status waywiser_copy_blocks_and_wait(waywiser_context* context, void* to, size_t to_stride,
                                              size_t to_blocks, const void* from,
                                              size_t from_stride, size_t from_blocks, size_t block,
                                              const int64_t* to_index, const int64_t* from_index,
                                              size_t count, void* stream, double timeout,
                                              waywiser_transfer** handle) {
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::copy_list_and_wait(
            context->engine,
            checked_blocks({to, to_stride, to_blocks, to_index},
                           {from, from_stride, from_blocks, from_index}, block, count),
            CallerStream::of(stream), transfer::Deadline(timeout));
    });
}

waywiser_status waywiser_snapshot(waywiser_context* context, void* const* to,
                                  const void* const* from, const size_t* sizes, size_t count,
                                  void* stream, waywiser_transfer** handle) {
    return begin(context, handle, [&] {
        return transfer::snapshot(context->engine, checked_list(to, from, sizes, count),
                                  CallerStream::of(stream));
    });
}

waywiser_status waywiser_read(waywiser_context* context, int file, uint64_t offset, void* to,
                              size_t bytes, void* stream, size_t* moved,
                              waywiser_transfer** handle) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::read_async(context->engine, {file, offset}, to, bytes,
                                        CallerStream::of(stream));
        });
    }
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return guarded([&] {
        need_context(context);
        transfer::read(*context->engine, {file, offset}, to, bytes, CallerStream::of(stream),
                       moved != nullptr ? *moved : ignored);
    });
}

waywiser_status waywiser_read_and_wait(waywiser_context* context, int file, uint64_t offset,
                                       void* to, size_t bytes, void* stream, double timeout,
                                       size_t* moved, waywiser_transfer** handle) {
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::read_and_wait(context->engine, {file, offset}, to, bytes,
                                       CallerStream::of(stream), transfer::Deadline(timeout),
                                       moved != nullptr ? *moved : ignored);
    });
}

waywiser_status waywiser_write_with(waywiser_context* context, int file, uint64_t offset,
                                    const void* from, size_t bytes, uint32_t flags, void* stream,
                                    size_t* moved, waywiser_transfer** handle) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::write_async(context->engine, {file, offset}, from, bytes,
                                         CallerStream::of(stream), write_end(flags));
        });
    }
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return guarded([&] {
        need_context(context);
        transfer::write(*context->engine, {file, offset}, from, bytes, CallerStream::of(stream),
                        moved != nullptr ? *moved : ignored, write_end(flags));
    });
}

waywiser_status waywiser_write_with_and_wait(waywiser_context* context, int file, uint64_t offset,
                                             const void* from, size_t bytes, uint32_t flags,
                                             void* stream, double timeout, size_t* moved,
                                             waywiser_transfer** handle) {
    std::size_t ignored = 0;
    if (moved != nullptr) *moved = 0;
    return move_and_wait(context, timeout, handle, [&] {
        return transfer::write_and_wait(context->engine, {file, offset}, from, bytes,
                                        CallerStream::of(stream), transfer::Deadline(timeout),
                                        moved != nullptr ? *moved : ignored, write_end(flags));
    });
}

waywiser_status waywiser_write(waywiser_context* context, int file, uint64_t offset,
                               const void* from, size_t bytes, void* stream, size_t* moved,
                               waywiser_transfer** handle) {
    return waywiser_write_with(context, file, offset, from, bytes, 0, stream, moved, handle);
}

waywiser_status waywiser_write_and_wait(waywiser_context* context, int file, uint64_t offset,
                                        const void* from, size_t bytes, void* stream,
                                        double timeout, size_t* moved, waywiser_transfer** handle) {
    return waywiser_write_with_and_wait(context, file, offset, from, bytes, 0, stream, timeout,
                                        moved, handle);
}

waywiser_status waywiser_mark(waywiser_context* context, void* stream, waywiser_transfer** handle) {
    return guarded([&] {
        need_argument(handle, "transfer", kTransferPlace);
        *handle = nullptr;
        need_context(context);
        auto marked = transfer::mark(*context->engine, CallerStream::of(stream));
        if (marked) *handle = new waywiser_transfer{context->engine, std::move(*marked)};
    });
}

int waywiser_transfer_done(waywiser_transfer* handle) {
    if (handle == nullptr) return 1;
    try {
        handle->engine->check_process();
        const gpu::CallerState keep;
        return handle->started.done() ? 1 : 0;
    } catch (...) {
        return 1;  // it has failed; its result has the error
    }
}

waywiser_status waywiser_transfer_result(waywiser_transfer* handle, double timeout, size_t* moved) {
    if (moved != nullptr) *moved = 0;
    if (handle == nullptr) return WAYWISER_OK;
    bool ended = true;
    const waywiser_status status = guarded([&] {
        handle->engine->check_process();
        const gpu::CallerState keep;
        need(!std::isnan(timeout), kNotANumber);
        try {
            ended = handle->started.wait(transfer::Deadline(timeout));
        } catch (...) {
            if (moved != nullptr) *moved = handle->started.moved();
            throw;
        }
        if (moved == nullptr) return;
        *moved = ended ? handle->started.moved_in_all() : handle->started.moved();
    });
    return status == WAYWISER_OK && !ended ? too_late("ended", timeout) : status;
}

waywiser_status waywiser_transfer_wait(waywiser_transfer* handle, void* stream, double timeout) {
    return order_stream(handle, stream, timeout, &transfer::Completion::order);
}

waywiser_status waywiser_transfer_wait_source_read(waywiser_transfer* handle, void* stream,
                                                   double timeout) {
    return order_stream(handle, stream, timeout, &transfer::Completion::order_reads);
}

int waywiser_transfer_source_read_pending(waywiser_transfer* handle) {
    if (handle == nullptr || handle->engine->forked()) return 0;
    return handle->started.reads_pending() ? 1 : 0;
}

waywiser_status waywiser_transfer_notify(waywiser_transfer* handle, int descriptor) {
    return guarded([&] {
        if (handle != nullptr) handle->engine->check_process();
        transfer::check_writable(descriptor, "notifying");
        if (handle == nullptr) return transfer::write_notification(descriptor);
        const gpu::CallerState keep;
        handle->started.notify(descriptor, *handle->engine);
    });
}

void waywiser_transfer_release(waywiser_transfer* handle) {
    if (handle == nullptr || handle->engine->forked()) return;
    const gpu::CallerState keep;
    delete handle;
}

waywiser_status waywiser_explain(waywiser_context* context, const void* to, const void* from,
                                 size_t bytes, char* text, size_t capacity) {
    return guarded([&] {
        need_context(context);
        need_argument(text, "text", "an array of capacity characters");
        need(capacity > 0, "the argument capacity is 0: pass the size of the array text");
        const std::string line = transfer::explain(*context->engine, to, from, bytes);
        write_text(line, text, capacity);
    });
}

waywiser_status waywiser_copy_method(waywiser_context* context, const void* to, const void* from,
                                     size_t bytes, waywiser_method* method) {
    return guarded([&] {
        need_context(context);
        need_argument(method, "method", "the address of a waywiser_method");
        *method = WAYWISER_METHOD_NONE;
        if (bytes == 0) return;
        const transfer::Choice choice = transfer::choice_of(*context->engine, to, from, bytes);
        *method = choice.method == transfer::Choice::Method::plain ? WAYWISER_METHOD_PLAIN
                                                                   : WAYWISER_METHOD_CHUNKED;
    });
}

waywiser_status waywiser_explain_batch(waywiser_context* context, void* const* to,
                                       const void* const* from, const size_t* sizes, size_t count,
                                       char* text, size_t capacity, size_t* needed) {
    return explain_list(context, text, capacity, needed,
                        [&] { return checked_list(to, from, sizes, count); });
}

waywiser_status waywiser_explain_blocks(waywiser_context* context, void* to, size_t to_stride,
                                        size_t to_blocks, const void* from, size_t from_stride,
                                        size_t from_blocks, size_t block, const int64_t* to_index,
                                        const int64_t* from_index, size_t count, char* text,
                                        size_t capacity, size_t* needed) {
    return explain_list(context, text, capacity, needed, [&] {
        return checked_blocks({to, to_stride, to_blocks, to_index},
                              {from, from_stride, from_blocks, from_index}, block, count);
    });
}

waywiser_status waywiser_machine(char* text, size_t capacity, size_t* needed) {
    return guarded([&] {
        need_argument(needed, "needed", "the address of a size_t");
        if (capacity > 0) need_argument(text, "text", "an array of capacity characters");
        const gpu::CallerState keep;
        const std::string json = transfer::machine_json(transfer::discover_machine());
        *needed = write_text(json, text, capacity);
    });
}

}  // extern "C"
