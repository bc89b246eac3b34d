#include "trace/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <set>

#include "trace/cupti.hpp"
#include "trace/pages.hpp"
#include "trace/tracer.hpp"
#include "waywiser/transfer.h"

namespace waywiser::trace {
namespace {

End end_of_side(waywiser_memory_kind kind, int gpu) {
    constexpr std::array kKinds{Kind::Pageable, Kind::Pinned, Kind::Device, Kind::Managed};
    const auto place = static_cast<std::size_t>(kind);
    return {.kind = place < kKinds.size() ? kKinds[place] : Kind::Unknown, .gpu = gpu};
}

Direction direction_between(const End& from, const End& to) {
    const bool from_gpu = from.kind == Kind::Device, to_gpu = to.kind == Kind::Device;
    if (from_gpu && to_gpu) return from.gpu == to.gpu ? Direction::OnDevice : Direction::Peer;
    if (from_gpu) return Direction::ToHost;
    if (to_gpu) return Direction::ToDevice;
    const bool known = from.kind != Kind::Unknown && to.kind != Kind::Unknown;
    return known ? Direction::OnHost : Direction::Unknown;
}

PageSample sample_host_side(const waywiser_trace_record& record) {
    if (record.from_kind == WAYWISER_PAGEABLE || record.from_kind == WAYWISER_PINNED)
        return sample_pages(record.from, record.bytes);
    if (record.to_kind == WAYWISER_PAGEABLE || record.to_kind == WAYWISER_PINNED)
        return sample_pages(record.to, record.bytes);
    return {};
}

void begin_transfer(void*, const waywiser_trace_record* record) {
    Tracer* const tracer = Tracer::current();
    if (tracer == nullptr) return;
    ThreadLog& log = tracer->calls.of_this_thread();
    const Caller caller = log.callers.find(false);
    LibraryCopy copy{.id = record->id, .bytes = record->bytes, .asynchronous = record->waits == 0};
    copy.key.site = caller.site;
    copy.key.operation = Operation::LibraryCopy;
    copy.key.from = end_of_side(record->from_kind, record->from_gpu);
    copy.key.to = end_of_side(record->to_kind, record->to_gpu);
    copy.key.direction = direction_between(copy.key.from, copy.key.to);
    copy.key.bytes_log2 = bytes_log2(record->bytes);
    if (CallLog::is_sampled(log, caller.site)) copy.pages = sample_host_side(*record);
    log.library_transfer = record->id;
    log.library_site = caller.site;
    // A list's pieces lie anywhere.
    const bool one_range = record->operations == 1 && record->kind == WAYWISER_COPY;
    tracer->calls.open_transfers().begin(
        {copy, one_range ? reinterpret_cast<std::uintptr_t>(record->to) : 0,
         one_range ? reinterpret_cast<std::uintptr_t>(record->from) : 0});
    tracer->add(copy);
}

void end_transfer(void*, const waywiser_trace_record* record) {
    Tracer* const tracer = Tracer::current();
    if (tracer == nullptr) return;
    const auto begun = tracer->calls.open_transfers().end(record->id);
    if (!begun) return;
    LibraryCopy copy = *begun;
    copy.bytes = record->moved;
    copy.ended = std::max<std::uint64_t>(record->ended, 1);
    const std::uint64_t returned = record->returned != 0 ? record->returned : record->ended;
    copy.call_nanoseconds = returned > record->called ? returned - record->called : 0;
    tracer->add(copy);
}

}  // namespace

void join_transfer_library(std::string& why_not) {
    // Only the tracer's thread is here, and after it the thread that ends the process. Never
    // destroyed: that would be before the end of the tracer.
    static auto& joined = *new std::set<std::string>;
    for (const std::string& path : loaded_libraries("libwaywiser_transfer")) {
        if (joined.contains(path)) continue;
        void* const library = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
        if (library == nullptr) continue;
        const auto set_tracer = reinterpret_cast<waywiser_status (*)(const waywiser_tracer*)>(
            dlsym(library, "waywiser_set_tracer"));
        joined.insert(path);
        if (set_tracer == nullptr) continue;
        static const waywiser_tracer tracer{sizeof(waywiser_tracer), begin_transfer, end_transfer,
                                            nullptr};
        if (set_tracer(&tracer) != WAYWISER_OK)
            why_not =
                "another tracer is set in the transfer library: its copies are seen as those "
                "of the lines that call it";
    }
}

}  // namespace waywiser::trace
