// What the tracer orders from CUPTI. No error of it reaches the program.
#include <array>
#include <cstdlib>
#include <cstring>

#include "trace/buffers.hpp"
#include "trace/clock.hpp"
#include "trace/native_frames.hpp"
#include "trace/tracer.hpp"

namespace waywiser::trace {
namespace {

bool is_off(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && std::strcmp(value, "0") == 0;
}

bool is_on(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && std::strcmp(value, "1") == 0;
}

void call_back(void*, std::uint32_t domain, std::uint32_t id, const void* data) {
    Tracer* const tracer = Tracer::current();
    if (tracer != nullptr && data != nullptr)
        tracer->on_call(domain, id, *static_cast<const cupti::CallData*>(data));
}

std::string failure_text(int result) {
    if (result == cupti::kNotPermitted)
        return "the driver does not permit profiling to this user (result 35): ask the "
               "administrator for NVreg_RestrictProfilingToAdminUsers=0";
    return "CUPTI reports result " + std::to_string(result) +
           ", as it may beside debuggers, MPS, vGPU and confidential computing";
}

}  // namespace

void Tracer::enable(bool leave_buffers) {
    native::prepare();
    enable_callbacks();
    // Some versions know theirs only now.
    if (facts_.cupti_version == 0 && cupti_.get_version != nullptr)
        cupti_.get_version(&facts_.cupti_version);
    records_of_.cupti_version = facts_.cupti_version;
    if (leave_buffers && !lines_) {
        note("activity-taken", "the other profiler keeps its records: no copy is recorded here");
        return;
    }
    if (cupti_.register_clock != nullptr)
        own_clock_ = cupti_.register_clock(monotonic_now) == cupti::kSuccess;
    if (!own_clock_) measure_clock();
    const int result = cupti_.register_buffers(give_buffer, take_buffer);
    if (result != cupti::kSuccess) {
        note("activity-taken", "no records of copies: " + failure_text(result));
        return;
    }
    buffers_ = true;
    enable_activities();
}

void Tracer::leave_callbacks() {
    if (!lines_.exchange(false)) return;
    cupti_.unsubscribe(subscriber_);
    note("subscriber-taken",
         "the program has started a profiler, which has the callbacks of CUPTI since then: later "
         "copies have no lines");
}

void Tracer::leave_buffers() {
    if (!buffers_.load()) return;
    cupti_.flush(0);  // what was recorded until now is of the tracer
    buffers_ = false;
    note("activity-taken",
         "the program has started a profiler, which has the records of CUPTI since then: later "
         "copies are missing");
}

void Tracer::enable_activities() {
    for (const std::uint32_t activity :
         {cupti::kCopyActivity, cupti::kPeerCopyActivity, cupti::kSetActivity}) {
        const int result = cupti_.enable(activity);
        if (result != cupti::kSuccess)
            note("not-permitted", "some copies are not recorded: " + failure_text(result));
    }
    // Never the kind that makes kernels run one after the other.
    if (!is_off("WAYWISER_TRACE_KERNELS")) {
        const int result = cupti_.enable(cupti::kConcurrentKernelActivity);
        facts_.kernels = result == cupti::kSuccess;
        if (!facts_.kernels)
            note("no-kernels",
                 "kernels are not recorded, so nothing is known about what they "
                 "hide: " +
                     failure_text(result));
    }
    enable_managed();
}

// The driver has to be ready, which it may not be before its first call has returned.
void Tracer::enable_managed() {
    ++managed_tries_;
    if (cupti_.configure_unified == nullptr || is_off("WAYWISER_TRACE_MANAGED")) return;
    constexpr std::uint32_t kOfOneDevice = 1;
    std::array<cupti::UnifiedMemoryConfig, 5> configs{{
        {kOfOneDevice, cupti::kBytesToDevice, 0, 1},
        {kOfOneDevice, cupti::kBytesToHost, 0, 1},
        {kOfOneDevice, cupti::kBytesBetweenDevices, 0, 1},
        {kOfOneDevice, cupti::kHostFaults, 0, 1},
        {kOfOneDevice, cupti::kDeviceFaults, 0, 1},
    }};
    // Faults make programs with managed memory much slower when they are recorded.
    const std::uint32_t count = is_on("WAYWISER_TRACE_FAULTS") ? configs.size() : 3;
    managed_ = cupti_.configure_unified(configs.data(), count) == cupti::kSuccess &&
               cupti_.enable(cupti::kUnifiedMemoryActivity) == cupti::kSuccess;
}

void Tracer::enable_callbacks() {
    if (cupti_.subscribe == nullptr || cupti_.enable_callback == nullptr ||
        is_off("WAYWISER_TRACE_LINES")) {
        note("no-lines", "lines are not recorded");
        return;
    }
    const int result = cupti_.subscribe(&subscriber_, call_back, nullptr);
    if (result == cupti::kSeveralSubscribers || result == cupti::kMostSubscribers) {
        note("subscriber-taken", "another profiler has the callbacks of CUPTI (result " +
                                     std::to_string(result) +
                                     "): copies have no lines; run without it to have them");
        return;
    }
    if (result != cupti::kSuccess) {
        note("no-lines", "lines are not recorded: " + failure_text(result));
        return;
    }
    lines_ = true;
    // A version that does not know a call returns an error.
    for (const ApiCall& call : driver_calls())
        cupti_.enable_callback(1, subscriber_, cupti::kDriverApi, call.id);
    for (const ApiCall& call : runtime_calls())
        cupti_.enable_callback(1, subscriber_, cupti::kRuntimeApi, call.id);
}

}  // namespace waywiser::trace
