// The C interface: what a context has moved.
#include <cstddef>
#include <string>

#include "transfer/capi_guard.hpp"
#include "transfer/engine.hpp"
#include "transfer/statistics.hpp"

using namespace waywiser;  // the whole file uses it
using namespace waywiser::capi;

namespace waywiser::capi {

std::size_t first_size(const waywiser_stats&) {
    return offsetof(waywiser_stats, peak_pinned_bytes) + sizeof(std::size_t);
}
std::size_t first_size(const waywiser_method_stats&) {
    return offsetof(waywiser_method_stats, cancellations) + sizeof(std::uint64_t);
}

}  // namespace waywiser::capi

namespace {

double seconds_of(std::chrono::nanoseconds taken) {
    return std::chrono::duration<double>(taken).count();
}

}  // namespace

extern "C" {

const char* waywiser_method_name(waywiser_method method) {
    return is_known(method, WAYWISER_METHOD_WRITE) ? transfer::name_of_method(method) : nullptr;
}

waywiser_status waywiser_context_method_stats(waywiser_context* context, waywiser_method method,
                                              waywiser_method_stats* stats) {
    return guarded([&] {
        need_context(context);
        need_argument(stats, "stats", "the address of a waywiser_method_stats");
        need(is_known(method, WAYWISER_METHOD_WRITE) && method != WAYWISER_METHOD_NONE,
             "the argument method moves nothing, or is unknown to this library: pass another "
             "waywiser_method");
        context->engine->check_process();
        const transfer::MethodCounts found = context->engine->statistics().of_method(method);
        give(stats,
             waywiser_method_stats{.size = 0,
                                   .transfers = found.transfers,
                                   .bytes = found.bytes,
                                   .seconds = seconds_of(found.taken),
                                   .failures = found.failures,
                                   .cancellations = found.cancellations},
             "waywiser_method_stats");
    });
}

waywiser_status waywiser_context_stats(waywiser_context* context, waywiser_stats* stats) {
    return guarded([&] {
        need_context(context);
        need_argument(stats, "stats", "the address of a waywiser_stats");
        context->engine->check_process();
        const transfer::Engine& engine = *context->engine;
        const transfer::Statistics& statistics = engine.statistics();
        waywiser_stats all{.size = 0,
                           .transfers = 0,
                           .bytes = 0,
                           .failures = 0,
                           .cancellations = 0,
                           .staging_waits = statistics.staging_waits(),
                           .staging_wait_seconds = seconds_of(statistics.staging_wait()),
                           .wake_ups = engine.wake_ups(),
                           .peak_pinned_bytes = statistics.peak_pinned_bytes()};
        for (int method = 0; transfer::name_of_method(static_cast<waywiser_method>(method));
             ++method) {
            const transfer::MethodCounts found =
                statistics.of_method(static_cast<waywiser_method>(method));
            all.transfers += found.transfers;
            all.bytes += found.bytes;
            all.failures += found.failures;
            all.cancellations += found.cancellations;
        }
        give(stats, all, "waywiser_stats");
    });
}

}  // extern "C"
