// The C interface: arguments checked, exceptions turned into a status and one line.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "host/affinity.hpp"
#include "transfer/copy.hpp"
#include "transfer/describe.hpp"
#include "transfer/discover.hpp"
#include "transfer/engine.hpp"
#include "transfer/file_end.hpp"
#include "transfer/list_copy.hpp"
#include "transfer/pinned_memory.hpp"
#include "waywiser/transfer.h"

using namespace waywiser;  // NOLINT(google-build-using-namespace): the file is nothing else
using transfer::CallerStream;
using transfer::Engine;

struct waywiser_context {
    std::shared_ptr<Engine> engine;
};

struct waywiser_transfer {
    std::shared_ptr<Engine> engine;
    transfer::Started started;
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

// The status of the exception in flight.
waywiser_status caught() {
    try {
        throw;
    } catch (const transfer::InvalidCopy& error) {
        return failed(WAYWISER_INVALID, error.what());
    } catch (const transfer::ForkedProcess& error) {
        return failed(WAYWISER_FORKED, error.what());
    } catch (const transfer::Cancelled& error) {
        return failed(WAYWISER_CANCELLED, error.what());
    } catch (const transfer::FileError& error) {
        return failed(WAYWISER_IO, error.what(), error.error());
    } catch (const gpu::Error& error) {
        return failed(status_of(error), error.what());
    } catch (const Refused& error) {
        return failed(WAYWISER_UNSUPPORTED, error.what());
    } catch (const std::bad_alloc&) {
        return failed(WAYWISER_OUT_OF_MEMORY, "host memory is exhausted");
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

// As many bytes of a struct of the caller as both sides know.
template <class Struct>
void give(Struct* to, Struct from) {
    const std::size_t size = to->size;
    from.size = size;
    std::memcpy(to, &from, std::min(size, sizeof from));
}

void need(bool holds, const char* message) {
    if (!holds) throw transfer::InvalidCopy(message);
}

bool plain_in_environment() {
    const char* const text = std::getenv("WAYWISER_TRANSFER");
    return text != nullptr && std::strcmp(text, "plain") == 0;
}

transfer::EngineOptions engine_options(const waywiser_options* given) {
    waywiser_options known{};
    if (given != nullptr) {
        need(given->size >= sizeof(std::size_t), "the options have no size");
        std::memcpy(&known, given, std::min(given->size, sizeof known));
    }
    transfer::EngineOptions options{
        .threads = known.threads,
        .pinned_bytes = known.pinned_bytes,
        .relays = {},
        .relay_bytes = known.relay_bytes,
        .polite_bytes = known.polite_bytes,
        .list_multiprocessors = static_cast<unsigned>(
            std::clamp<std::size_t>(known.list_multiprocessors, 1, 1U << 16U)),
        .plain = known.plain != 0 || plain_in_environment(),
        .peer_access = known.no_peer_access == 0};
    need(known.relay_count == 0 || known.relays != nullptr, "the relays are a null pointer");
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
        throw transfer::InvalidCopy("there is no GPU " + std::to_string(relay) +
                                    " that could relay: this machine has " +
                                    std::to_string(machine.gpus.size()));
    }
}

// Starts a transfer for the caller, or runs it at once where no handle is asked for.
template <class Start>
waywiser_status begin(waywiser_context* context, waywiser_transfer** handle, const Start& start) {
    return guarded([&] {
        need(context != nullptr && handle != nullptr, "a null pointer");
        *handle = new waywiser_transfer{context->engine, start()};
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
        need(context != nullptr, "a null pointer");
        transfer::EngineOptions chosen = engine_options(options);
        Machine machine = discovered();
        check_relays(chosen.relays, machine);
        auto made = std::make_unique<waywiser_context>();
        made->engine = std::make_shared<Engine>(std::move(machine), std::move(chosen));
        *context = made.release();
    });
}

void waywiser_context_release(waywiser_context* context) {
    // A child has none of the threads, and its mutexes may be locked for ever.
    if (context == nullptr || context->engine->forked()) return;
    const gpu::CallerState keep;
    context->engine->stop();
    delete context;
}

waywiser_status waywiser_context_usage(waywiser_context* context, waywiser_usage* usage) {
    return guarded([&] {
        need(context != nullptr && usage != nullptr, "a null pointer");
        context->engine->check_process();
        const Engine& engine = *context->engine;
        give(usage, waywiser_usage{.size = 0,
                                   .threads = engine.threads(),
                                   .most_threads = engine.options().threads,
                                   .pinned_bytes = engine.pinned_bytes(),
                                   .most_pinned_bytes = engine.options().pinned_bytes,
                                   .transfers = engine.jobs()});
    });
}

waywiser_status waywiser_describe(const void* data, size_t bytes,
                                  waywiser_description* description) {
    return guarded([&] {
        need(data != nullptr && description != nullptr, "a null pointer");
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
        give(description, found);
    });
}

waywiser_status waywiser_pinned_alloc(size_t bytes, int numa, void** data) {
    return guarded([&] {
        need(data != nullptr, "a null pointer");
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
        need(context != nullptr, "a null pointer");
        transfer::copy(*context->engine, to, from, bytes, CallerStream::of(stream));
    });
}

waywiser_status waywiser_copy_and_wait(waywiser_context* context, void* to, const void* from,
                                       size_t bytes, void* stream, double timeout,
                                       waywiser_transfer** handle) {
    return guarded([&] {
        need(context != nullptr && handle != nullptr, "a null pointer");
        *handle = nullptr;
        need(!std::isnan(timeout), "the timeout is not a number");
        auto left = transfer::copy_and_wait(*context->engine, to, from, bytes,
                                            CallerStream::of(stream), timeout);
        if (left) *handle = new waywiser_transfer{context->engine, std::move(*left)};
    });
}

waywiser_status waywiser_copy_async(waywiser_context* context, void* to, const void* from,
                                    size_t bytes, void* stream, waywiser_transfer** handle) {
    return begin(context, handle, [&] {
        return transfer::copy_async(context->engine, to, from, bytes, CallerStream::of(stream));
    });
}

waywiser_status waywiser_copy_batch(waywiser_context* context, void* const* to,
                                    const void* const* from, const size_t* sizes, size_t count,
                                    void* stream, waywiser_transfer** handle) {
    const auto list = [&] {
        need(count == 0 || (to != nullptr && from != nullptr && sizes != nullptr),
             "copy_batch: a null pointer");
        return transfer::list_of({to, count}, {from, count}, {sizes, count});
    };
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::copy_list_async(context->engine, list(), CallerStream::of(stream));
        });
    }
    return guarded([&] {
        need(context != nullptr, "a null pointer");
        transfer::copy_list(*context->engine, list(), CallerStream::of(stream));
    });
}

waywiser_status waywiser_copy_blocks(waywiser_context* context, void* to, size_t to_stride,
                                     size_t to_blocks, const void* from, size_t from_stride,
                                     size_t from_blocks, size_t block, const int64_t* to_index,
                                     const int64_t* from_index, size_t count, void* stream,
                                     waywiser_transfer** handle) {
    const auto list = [&] {
        need(count == 0 ||
                 (to != nullptr && from != nullptr && to_index != nullptr && from_index != nullptr),
             "copy_blocks: a null pointer");
        return transfer::list_of({.data = static_cast<std::byte*>(to),
                                  .stride = to_stride,
                                  .blocks = to_blocks,
                                  .index = {to_index, count}},
                                 {.data = static_cast<std::byte*>(const_cast<void*>(from)),
                                  .stride = from_stride,
                                  .blocks = from_blocks,
                                  .index = {from_index, count}},
                                 block);
    };
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::copy_list_async(context->engine, list(), CallerStream::of(stream));
        });
    }
    return guarded([&] {
        need(context != nullptr, "a null pointer");
        transfer::copy_list(*context->engine, list(), CallerStream::of(stream));
    });
}

waywiser_status waywiser_read(waywiser_context* context, int file, uint64_t offset, void* to,
                              size_t bytes, void* stream, size_t* moved,
                              waywiser_transfer** handle) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::read_async(context->engine, file, offset, to, bytes,
                                        CallerStream::of(stream));
        });
    }
    std::size_t ignored = 0;
    return guarded([&] {
        need(context != nullptr, "a null pointer");
        transfer::read(*context->engine, file, offset, to, bytes, CallerStream::of(stream),
                       moved != nullptr ? *moved : ignored);
    });
}

waywiser_status waywiser_write(waywiser_context* context, int file, uint64_t offset,
                               const void* from, size_t bytes, void* stream, size_t* moved,
                               waywiser_transfer** handle) {
    if (handle != nullptr) {
        return begin(context, handle, [&] {
            return transfer::write_async(context->engine, file, offset, from, bytes,
                                         CallerStream::of(stream));
        });
    }
    std::size_t ignored = 0;
    return guarded([&] {
        need(context != nullptr, "a null pointer");
        transfer::write(*context->engine, file, offset, from, bytes, CallerStream::of(stream),
                        moved != nullptr ? *moved : ignored);
    });
}

waywiser_status waywiser_mark(waywiser_context* context, void* stream, waywiser_transfer** handle) {
    return guarded([&] {
        need(context != nullptr && handle != nullptr, "a null pointer");
        *handle = nullptr;
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
        return 1;  // it has failed: the result says how
    }
}

waywiser_status waywiser_transfer_result(waywiser_transfer* handle, double timeout, size_t* moved) {
    if (moved != nullptr) *moved = 0;
    bool ended = true;
    const waywiser_status status = guarded([&] {
        need(handle != nullptr, "a null pointer");
        handle->engine->check_process();
        const gpu::CallerState keep;
        need(!std::isnan(timeout), "the timeout is not a number");
        ended = handle->started.wait(timeout);
    });
    if (handle != nullptr && moved != nullptr && status != WAYWISER_FORKED) {
        const bool all = status == WAYWISER_OK && ended;
        *moved = all ? handle->started.moved_in_all() : handle->started.moved();
    }
    if (status == WAYWISER_OK && !ended) {
        return failed(WAYWISER_TIMEOUT, "the transfer has not ended within " +
                                            std::to_string(timeout) + " s; it goes on");
    }
    return status;
}

waywiser_status waywiser_transfer_wait(waywiser_transfer* handle, void* stream) {
    return guarded([&] {
        need(handle != nullptr, "a null pointer");
        handle->engine->check_process();
        const gpu::CallerState keep;
        handle->started.order(*handle->engine, CallerStream::of(stream));
    });
}

waywiser_status waywiser_transfer_notify(waywiser_transfer* handle, int descriptor) {
    return guarded([&] {
        need(handle != nullptr, "a null pointer");
        handle->engine->check_process();
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
        need(context != nullptr && text != nullptr && capacity > 0, "a null pointer");
        const std::string line = transfer::explain(*context->engine, to, from, bytes);
        const std::size_t length = std::min(line.size(), capacity - 1);
        std::memcpy(text, line.data(), length);
        text[length] = '\0';
    });
}

waywiser_status waywiser_machine(char* text, size_t capacity, size_t* needed) {
    return guarded([&] {
        need(needed != nullptr && (text != nullptr || capacity == 0), "a null pointer");
        const gpu::CallerState keep;
        const std::string json = transfer::machine_json(transfer::discover_machine());
        *needed = json.size() + 1;
        if (capacity == 0) return;
        const std::size_t length = std::min(json.size(), capacity - 1);
        std::memcpy(text, json.data(), length);
        text[length] = '\0';
    });
}

}  // extern "C"
