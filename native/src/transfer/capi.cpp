// The C interface: contexts, memory and explanations.
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
#include "transfer/capi_guard.hpp"
#include "transfer/capi_lists.hpp"
#include "transfer/copy.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/cpu_choice.hpp"
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
using namespace waywiser::capi;
using transfer::Engine;

namespace {

// Sets what the environment asks for.
void add_environment(transfer::EngineOptions& options) {
    const char* const text = std::getenv("WAYWISER_TRANSFER");
    if (text == nullptr || *text == '\0') return;
    if (std::strcmp(text, "plain") == 0) {
        options.plain = true;
        return;
    }
    throw NotSupported(std::string("the environment variable WAYWISER_TRANSFER is \"") + text +
                       "\": set it to plain, or unset it");
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
        .plain = known.plain != 0,
        .peer_access = known.no_peer_access == 0,
        .report_warnings = known.quiet == 0,
        .log = {.call = known.log, .data = known.log_data},
        .cpus = {}};
    add_environment(options);
    if (!(known.spin_seconds >= 0 && known.spin_seconds <= kMostSpinSeconds)) {
        throw transfer::InvalidCopy("spin_seconds is " + std::to_string(known.spin_seconds) +
                                    ": threads may spin for 0 to 1 second after a copy");
    }
    need_array(known.relays, known.relay_count, "options.relays", "options.relay_count",
               "the numbers of relay_count GPUs");
    options.relays.assign(known.relays, known.relays + known.relay_count);
    return options;
}

transfer::CpuChoice cpu_choice(const waywiser_options& known) {
    need_array(known.cpus, known.cpu_count, "options.cpus", "options.cpu_count",
               "the numbers of cpu_count CPUs");
    need_array(known.numa_nodes, known.numa_node_count, "options.numa_nodes",
               "options.numa_node_count", "the numbers of numa_node_count NUMA nodes");
    return {.cpus = {known.cpus, known.cpus + known.cpu_count},
            .numa_nodes = {known.numa_nodes, known.numa_nodes + known.numa_node_count}};
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

const char* waywiser_last_error(void) { return last_failure().message.c_str(); }
int waywiser_last_errno(void) { return last_failure().error; }
const char* waywiser_version(void) { return WAYWISER_VERSION; }
uint32_t waywiser_transfer_abi(void) { return WAYWISER_TRANSFER_ABI; }

waywiser_status waywiser_context_create(const waywiser_options* options,
                                        waywiser_context** context) {
    return guarded([&] {
        need_argument(context, "context", "the address of a waywiser_context*");
        *context = nullptr;
        const waywiser_options known =
            options == nullptr ? waywiser_options{} : take(*options, "waywiser_options");
        transfer::EngineOptions chosen = engine_options(known);
        Machine machine = discovered();
        check_relays(chosen.relays, machine);
        transfer::FoundPolicy found;
        if (!chosen.plain) {
            found =
                transfer::policy_of_process(known.policy == nullptr ? "" : known.policy, machine);
        }
        const transfer::CpuChoice cpus = cpu_choice(known);
        chosen.cpus = transfer::restrict_cpus(machine, cpus);
        chosen.own_cpus = !cpus.cpus.empty();
        auto made = std::make_unique<waywiser_context>();
        made->engine = Engine::make(std::move(machine), std::move(chosen), found);
        made->engine->log().wait();
        *context = made.release();
    });
}

void waywiser_context_release(waywiser_context* context) {
    // A child has none of the threads, and its mutexes may be locked forever.
    if (context == nullptr || context->engine->forked()) return;
    const gpu::CallerState keep;
    context->engine->stop();
    context->engine->log().end();
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
