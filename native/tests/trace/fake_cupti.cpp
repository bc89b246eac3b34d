// A CUPTI for tests. FAKE_CUPTI is a list of: "shuffle" (records come in any order), "late"
// (records come a flush late), "drop" (each tenth record is lost), "taken" (another subscriber is
// there), "own-clock" (it has no clock of others), "forbidden" (activities are not permitted). It
// writes records by the offsets that the headers of CUPTI have, and knows nothing of the tracer.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "fake_tools.hpp"

namespace fake::cupti {

namespace {

constexpr bool kNew = FAKE_CUPTI_VERSION >= 26;
constexpr std::size_t kCopyBytes = FAKE_CUPTI_VERSION >= 130500 ? 112 : kNew ? 96 : 88;
constexpr std::size_t kPeerBytes = 96, kSetBytes = kNew ? 104 : 88;
constexpr std::size_t kKernelBytes = FAKE_CUPTI_VERSION >= 130500 ? 248 : 208;
constexpr std::size_t kManagedBytes = kNew ? 104 : 64;

using Record = std::vector<std::uint8_t>;

struct CallData {
    std::uint32_t site;
    const char* function;
    const void* parameters;
    const void* returned;
    const char* symbol;
    void* context;
    std::uint32_t context_id;
    std::uint64_t* own;
    std::uint32_t correlation;
};

std::mutex state;
Callback callback = nullptr;
void* callback_own = nullptr;
Needed needed = nullptr;
Filled filled = nullptr;
std::uint64_t (*the_clock)() = nullptr;
std::set<std::pair<std::uint32_t, std::uint32_t>> callbacks;
std::set<std::uint32_t> activities;
std::vector<Record> waiting, late;
std::size_t dropped = 0, made = 0;

bool set_to(const char* word) {
    const char* const all = std::getenv("FAKE_CUPTI");
    return all != nullptr && std::strstr(all, word) != nullptr;
}

std::uint64_t read_clock(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t stamp(std::uint64_t monotonic) {
    static const std::uint64_t step =
        (the_clock != nullptr ? the_clock() : read_clock(CLOCK_REALTIME)) -
        read_clock(CLOCK_MONOTONIC);
    return monotonic + step;
}

template <typename Value>
void put(Record& record, std::size_t offset, Value value) {
    std::memcpy(record.data() + offset, static_cast<const void*>(&value), sizeof value);
}

Record start_record(const fake::Event& event, std::size_t bytes) {
    Record record(bytes, 0xee);  // what the tracer must not read
    put<std::uint32_t>(record, 0, event.what);
    const std::uint64_t start = stamp(event.start);
    put(record, 16, start);
    put(record, 24, start + event.end - event.start);
    return record;
}

Record copy_record(const fake::Event& event) {
    const bool peer = event.what == fake::Event::PeerCopy;
    Record record = start_record(event, peer ? kPeerBytes : kCopyBytes);
    put(record, 4, static_cast<std::uint8_t>(event.direction));
    put(record, 5, static_cast<std::uint8_t>(event.from_kind));
    put(record, 6, static_cast<std::uint8_t>(event.to_kind));
    put(record, 7, static_cast<std::uint8_t>(event.asynchronous ? 1 : 0));
    put(record, 8, event.bytes);
    put(record, 32, event.gpu);
    put(record, 40, event.stream);
    if (peer) {
        put(record, 44, event.from_gpu);
        put(record, 52, event.to_gpu);
        put(record, 60, event.correlation);
        put(record, 80, event.graph);
        return record;
    }
    put(record, 44, event.correlation);
    put(record, 72, event.graph);
    if constexpr (kNew) put(record, 88, event.count);
    return record;
}

Record set_record(const fake::Event& event) {
    Record record = start_record(event, kSetBytes);
    put(record, 8, event.bytes);
    put(record, 32, event.gpu);
    put(record, 40, event.stream);
    put(record, 44, event.correlation);
    put(record, 48, static_cast<std::uint16_t>(event.asynchronous ? 1 : 0));
    put(record, 50, static_cast<std::uint16_t>(event.to_kind));
    put(record, 72, event.graph);
    return record;
}

Record kernel_record(const fake::Event& event) {
    Record record = start_record(event, kKernelBytes);
    put(record, 40, event.gpu);
    put(record, 48, event.stream);
    put(record, 92, event.correlation);
    put(record, 104, event.name);
    put(record, 156, event.graph);
    return record;
}

Record managed_record(const fake::Event& event) {
    Record record = start_record(event, kManagedBytes);
    put(record, 4, event.counter);
    put(record, 8, event.bytes);
    put(record, 40, event.from_gpu);
    put(record, 44, event.to_gpu);
    return record;
}

void take_event(const fake::Event& event) {
    const std::lock_guard lock(state);
    if (!activities.contains(event.what)) return;
    if (set_to("drop") && ++made % 10 == 0) {
        ++dropped;
        return;
    }
    waiting.push_back(event.what == fake::Event::Set       ? set_record(event)
                      : event.what == fake::Event::Kernel  ? kernel_record(event)
                      : event.what == fake::Event::Managed ? managed_record(event)
                                                           : copy_record(event));
}

void take_call(bool begins, std::uint32_t domain, std::uint32_t id, const void* parameters,
               const int* result, std::uint32_t correlation) {
    if (callback == nullptr || !callbacks.contains({domain, id})) return;
    std::uint64_t own = 0;
    const CallData data{begins ? 0u : 1u, "?", parameters, result,     nullptr,
                        nullptr,          1,   &own,       correlation};
    callback(callback_own, domain, id, &data);
}

std::size_t size_of(std::uint32_t what) {
    switch (what) {
        case fake::Event::Copy: return kCopyBytes;
        case fake::Event::PeerCopy: return kPeerBytes;
        case fake::Event::Set: return kSetBytes;
        case fake::Event::Kernel: return kKernelBytes;
        default: return kManagedBytes;
    }
}

void deliver(const std::vector<Record>& records) {
    for (std::size_t next = 0; next < records.size();) {
        std::uint8_t* buffer = nullptr;
        std::size_t size = 0, most = 0, used = 0;
        needed(&buffer, &size, &most);
        if (buffer == nullptr) {
            dropped += records.size() - next;
            return;
        }
        while (next < records.size() && used + records[next].size() <= size) {
            std::memcpy(buffer + used, records[next].data(), records[next].size());
            used += records[next++].size();
        }
        filled(nullptr, 0, buffer, size, used);
    }
}

}  // namespace

extern "C" {

int cuptiGetVersion(std::uint32_t* version) {
    *version = FAKE_CUPTI_VERSION;
    return 0;
}
int cuptiGetTimestamp(std::uint64_t* time) {
    *time = stamp(read_clock(CLOCK_MONOTONIC));
    return 0;
}
int cuptiActivityRegisterTimestampCallback(std::uint64_t (*clock)()) {
    if (set_to("own-clock")) return 1;
    the_clock = clock;
    return 0;
}
int cuptiActivityRegisterCallbacks(Needed is_needed, Filled is_filled) {
    needed = is_needed;
    filled = is_filled;
    return 0;
}
int cuptiActivityConfigureUnifiedMemoryCounter(void*, std::uint32_t) { return 0; }
int cuptiActivityEnable(std::uint32_t activity) {
    if (set_to("forbidden")) return 35;
    void* const driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (driver == nullptr) return 15;
    static const fake::Tools tools{take_call, take_event};
    reinterpret_cast<void (*)(const fake::Tools*)>(dlsym(driver, "fake_set_tools"))(&tools);
    const std::lock_guard lock(state);
    activities.insert(activity);
    return 0;
}
int cuptiActivityFlushAll(std::uint32_t force) {
    std::vector<Record> records;
    {
        const std::lock_guard lock(state);
        records.swap(waiting);
        if (set_to("late") && force == 0) records.swap(late);
        if (force != 0) records.insert(records.end(), late.begin(), late.end());
        if (force != 0) late.clear();
    }
    if (set_to("shuffle")) std::reverse(records.begin(), records.end());
    if (needed != nullptr) deliver(records);
    return 0;
}
int cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, std::uint8_t** record) {
    constexpr int kNoMore = 12;
    std::size_t next = 0;
    if (*record != nullptr) {
        std::uint32_t what = 0;
        std::memcpy(&what, *record, sizeof what);
        next = static_cast<std::size_t>(*record - buffer) + size_of(what);
    }
    if (next >= valid) return kNoMore;
    *record = buffer + next;
    return 0;
}
int cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* count) {
    *count = std::exchange(dropped, 0);
    return 0;
}
int cuptiSubscribe(void** subscriber, Callback function, void* own) {
    if (set_to("taken") || callback != nullptr) return 39;
    callback = function;
    callback_own = own;
    *subscriber = static_cast<void*>(&callback);
    return 0;
}
int cuptiUnsubscribe(void*) {
    callback = nullptr;
    callbacks.clear();
    return 0;
}
int cuptiEnableCallback(std::uint32_t enable, void*, std::uint32_t domain, std::uint32_t id) {
    if (enable != 0) callbacks.insert({domain, id});
    return 0;
}
}

}  // namespace fake::cupti
