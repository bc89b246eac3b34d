// A driver for tests, with GPUs whose memory is that of the host. It loads what
// CUDA_INJECTION64_PATH names, as the real one does in its first cuInit(). A copy takes 1 ns for
// 10 bytes and 1000 ns; copies and kernels of a GPU run one after the other, but beside each other.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "fake_tools.hpp"

namespace fake::driver {

namespace {

constexpr std::uint32_t kDriver = 1, kPageable = 1, kPinned = 2, kDevice = 3;
constexpr std::uint32_t kToDevice = 1, kToHost = 2, kOnDevice = 8, kPeer = 10;

std::mutex state;
fake::Tools tools;
std::uint32_t last_correlation = 0;
thread_local std::uint32_t correlation = 0;

struct Memory {
    std::uint64_t bytes;
    std::uint32_t kind, gpu;
};
std::map<std::uintptr_t, Memory> memories;
std::array<std::uint64_t, 8> copies_until{}, kernels_until{};

std::uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

Memory memory_at(const void* data) {
    const std::lock_guard lock(state);
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    auto next = memories.upper_bound(address);
    if (next != memories.begin()) {
        --next;
        if (address - next->first < next->second.bytes) return next->second;
    }
    return {0, kPageable, 0};
}

void keep(const void* data, std::uint64_t bytes, std::uint32_t kind, std::uint32_t gpu) {
    const std::lock_guard lock(state);
    memories[reinterpret_cast<std::uintptr_t>(data)] = {bytes, kind, gpu};
}

void forget(const void* data) {
    const std::lock_guard lock(state);
    memories.erase(reinterpret_cast<std::uintptr_t>(data));
}

void run(fake::Event event, std::uint64_t nanoseconds) {
    {
        const std::lock_guard lock(state);
        auto& until = (event.what == fake::Event::Kernel ? kernels_until : copies_until)[event.gpu];
        event.start = std::max(now(), until);
        event.end = until = event.start + nanoseconds;
    }
    event.correlation = correlation;
    if (tools.event != nullptr) tools.event(event);
}

int copy(void* to, const void* from, std::uint64_t bytes, bool asynchronous,
         std::uint64_t count = 0) {
    const Memory source = memory_at(from), destination = memory_at(to);
    const bool from_gpu = source.kind == kDevice, to_gpu = destination.kind == kDevice;
    fake::Event event;
    event.direction = from_gpu ? (to_gpu ? kOnDevice : kToHost) : kToDevice;
    if (from_gpu && to_gpu && source.gpu != destination.gpu) {
        event.what = fake::Event::PeerCopy;
        event.direction = kPeer;
    }
    event.from_kind = source.kind;
    event.to_kind = destination.kind;
    event.gpu = from_gpu ? source.gpu : destination.gpu;
    event.from_gpu = source.gpu;
    event.to_gpu = destination.gpu;
    event.bytes = bytes * std::max<std::uint64_t>(count, 1);
    event.count = count;
    event.asynchronous = asynchronous;
    if (count == 0) std::memmove(to, from, bytes);
    // No activity is of the host alone.
    if (from_gpu || to_gpu) run(event, 1000 + event.bytes / 10);
    return 0;
}

// Parameters as CUPTI shows them.
struct CopyParameters {
    void* to;
    const void* from;
    std::uint64_t bytes;
    void* stream;
};

int call_copy(std::uint32_t id, void* to, const void* from, std::uint64_t bytes,
              bool asynchronous) {
    struct Own {
        CopyParameters parameters;
        bool asynchronous;
    } own{{to, from, bytes, nullptr}, asynchronous};
    return fake_call(
        kDriver, id, &own.parameters,
        [](void* data) {
            const auto& o = *static_cast<Own*>(data);
            return copy(o.parameters.to, o.parameters.from, o.parameters.bytes, o.asynchronous);
        },
        &own);
}

int nothing(void*) { return 0; }

}  // namespace

extern "C" {

void fake_set_tools(const fake::Tools* own) { tools = *own; }

int fake_call(std::uint32_t domain, std::uint32_t id, const void* parameters, fake::Body body,
              void* own) {
    const std::uint32_t outer = correlation;
    const char* const each = std::getenv("FAKE_EACH_CALL_HAS_A_NUMBER");
    if (outer == 0 || each != nullptr) {
        const std::lock_guard lock(state);
        correlation = ++last_correlation;
    }
    if (tools.call != nullptr) tools.call(true, domain, id, parameters, nullptr, correlation);
    const int result = body(own);
    if (tools.call != nullptr) tools.call(false, domain, id, parameters, &result, correlation);
    correlation = outer;
    return result;
}

int cuInit(unsigned) {
    static const bool loaded = [] {
        const char* const path = std::getenv("CUDA_INJECTION64_PATH");
        void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
        if (library == nullptr) return false;
        const auto start = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
        return start != nullptr && start() == 1;
    }();
    const char* const must = std::getenv("FAKE_MUST_INJECT");
    return loaded || must == nullptr ? 0 : 999;
}

int cuDriverGetVersion(int* version) {
    const char* const set = std::getenv("FAKE_DRIVER");
    *version = set == nullptr ? 13000 : static_cast<int>(std::strtol(set, nullptr, 10));
    return 0;
}

int cuDeviceGet(int* device, int number) {
    *device = number;
    return number < 8 ? 0 : 101;
}
int cuDeviceGetName(char* name, int size, int) {
    std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
    return 0;
}
int cuDeviceGetUuid(unsigned char* uuid, int device) {
    for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(16 * device + i);
    return 0;
}
int cuDeviceGetPCIBusId(char* id, int size, int) {
    std::strncpy(id, "0000:3b:00.0", static_cast<std::size_t>(size));
    return 0;
}

// Device memory of any of the GPUs, to be freed by the end of the process alone.
void* fake_device_memory(std::uint64_t bytes, std::uint32_t gpu) {
    void* const data = std::calloc(1, bytes);
    keep(data, bytes, kDevice, gpu);
    return data;
}
void fake_kernel(const char* name, std::uint32_t gpu, std::uint64_t nanoseconds) {
    fake::Event event;
    event.what = fake::Event::Kernel;
    event.gpu = gpu;
    static auto& names = *new std::set<std::string>;  // CUPTI's stay where they are too
    event.name = names.insert(name).first->c_str();
    run(event, nanoseconds);
}
void fake_migration(std::uint32_t counter, std::uint64_t bytes, std::uint32_t gpu) {
    fake::Event event;
    event.what = fake::Event::Managed;
    event.counter = counter;
    event.bytes = bytes;
    event.to_gpu = event.from_gpu = event.gpu = gpu;
    run(event, bytes / 10);
}

int cuMemcpyHtoD_v2(void* to, const void* from, std::uint64_t bytes) {
    return call_copy(276, to, from, bytes, false);
}
int cuMemcpyHtoDAsync_v2(void* to, const void* from, std::uint64_t bytes, void*) {
    return call_copy(277, to, from, bytes, true);
}
int cuMemcpyDtoH_v2(void* to, const void* from, std::uint64_t bytes) {
    return call_copy(278, to, from, bytes, false);
}
int cuMemcpyDtoHAsync_v2(void* to, const void* from, std::uint64_t bytes, void*) {
    return call_copy(279, to, from, bytes, true);
}
int cuMemcpyAsync(void* to, const void* from, std::uint64_t bytes, void*) {
    return call_copy(306, to, from, bytes, true);
}
// `count` pieces of the same size; the addresses are those of the first.
int fake_batch(void* to, const void* from, std::uint64_t bytes, std::uint64_t count) {
    struct Own {
        void* to;
        const void* from;
        std::uint64_t bytes, count;
    } own{to, from, bytes, count};
    return fake_call(
        kDriver, 776, nullptr,
        [](void* data) {
            const auto& o = *static_cast<Own*>(data);
            return copy(o.to, o.from, o.bytes, true, o.count);
        },
        &own);
}
int cuMemsetD8_v2(void* data, unsigned char value, std::uint64_t bytes) {
    std::memset(data, value, bytes);
    fake::Event event;
    event.what = fake::Event::Set;
    event.to_kind = kDevice;
    event.gpu = memory_at(data).gpu;
    event.bytes = bytes;
    return fake_call(
        kDriver, 249, nullptr,
        [](void* own) {
            const auto& set = *static_cast<fake::Event*>(own);
            run(set, 500 + set.bytes / 100);
            return 0;
        },
        &event);
}
// A graph of one copy from pinned memory.
int fake_graph(std::uint64_t bytes) {
    return fake_call(
        kDriver, 514, nullptr,
        [](void* own) {
            fake::Event event;
            event.direction = kToDevice;
            event.from_kind = kPinned;
            event.to_kind = kDevice;
            event.graph = 5;
            event.bytes = *static_cast<std::uint64_t*>(own);
            event.asynchronous = true;
            run(event, 1000 + event.bytes / 10);
            return 0;
        },
        &bytes);
}

int cuMemHostAlloc(void** data, std::uint64_t bytes, unsigned) {
    struct Parameters {
        void** data;
        std::uint64_t bytes;
    } parameters{data, bytes};
    return fake_call(
        kDriver, 39, &parameters,
        [](void* own) {
            const auto& p = *static_cast<Parameters*>(own);
            *p.data = std::aligned_alloc(4096, (p.bytes + 4095) / 4096 * 4096);
            std::memset(*p.data, 0, p.bytes);
            keep(*p.data, p.bytes, kPinned, 0);
            return 0;
        },
        &parameters);
}
int cuMemFreeHost(void* data) {
    forget(data);
    std::free(data);
    return fake_call(kDriver, 38, nullptr, nothing, nullptr);
}
int cuMemHostRegister_v2(void* data, std::uint64_t bytes, unsigned) {
    struct Parameters {
        void* data;
        std::uint64_t bytes;
    } parameters{data, bytes};
    keep(data, bytes, kPinned, 0);
    return fake_call(kDriver, 379, &parameters, nothing, nullptr);
}
int cuMemHostUnregister(void* data) {
    forget(data);
    return fake_call(kDriver, 302, nullptr, nothing, nullptr);
}
int cuStreamSynchronize(void*) { return fake_call(kDriver, 126, nullptr, nothing, nullptr); }
}

}  // namespace fake::driver
