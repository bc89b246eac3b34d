// What this library uses of CUPTI, declared here: the prefixes of records that CUPTI 12.0 to 13.5
// have in common, and functions by name. Nothing of CUPTI is needed to build, and which one is
// loaded is decided when the program runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace waywiser::trace::cupti {

// cuptiGetVersion() of the CUPTI of CUDA 12.8: since then a record of a copy has `count`.
constexpr std::uint32_t kHasCopyCount = 26;

enum Activity : std::uint32_t {
    kCopyActivity = 1,
    kSetActivity = 2,
    kConcurrentKernelActivity = 10,
    kPeerCopyActivity = 22,
    kUnifiedMemoryActivity = 25,
};

enum Domain : std::uint32_t { kDriverApi = 1, kRuntimeApi = 2 };
enum Site : std::uint32_t { kEnter = 0, kExit = 1 };
enum Result : int {
    kSuccess = 0,
    kMostSubscribers = 12,  // what older versions return instead of the last
    kNotPermitted = 35,
    kSeveralSubscribers = 39,
};

// A bit of `flags` of copies and sets.
constexpr std::uint32_t kAsynchronous = 1;

// Values of UnifiedMemory::counter.
enum Counter : std::uint32_t {
    kBytesToDevice = 1,
    kBytesToHost = 2,
    kHostFaults = 3,
    kDeviceFaults = 4,
    kBytesBetweenDevices = 8,
};

struct Record {
    std::uint32_t activity;
};

struct Copy {
    std::uint32_t activity;
    std::uint8_t direction, from_kind, to_kind, flags;
    std::uint64_t bytes, start, end;
    std::uint32_t device, context, stream, correlation, runtime_correlation, padding;
    const void* reserved;
    std::uint64_t graph_node;
    std::uint32_t graph, channel, channel_type, padding_of_channel;
    std::uint64_t count;  // since kHasCopyCount: copies of one batched call
};

struct PeerCopy {
    std::uint32_t activity;
    std::uint8_t direction, from_kind, to_kind, flags;
    std::uint64_t bytes, start, end;
    std::uint32_t device, context, stream;
    std::uint32_t from_device, from_context, to_device, to_context, correlation;
    const void* reserved;
    std::uint64_t graph_node;
    std::uint32_t graph;
};

struct Set {
    std::uint32_t activity, value;
    std::uint64_t bytes, start, end;
    std::uint32_t device, context, stream, correlation;
    std::uint16_t flags, kind;
    std::uint32_t padding;
    const void* reserved;
    std::uint64_t graph_node;
    std::uint32_t graph;
};

struct Kernel {
    std::uint32_t activity;
    std::uint8_t settings[12];
    std::uint64_t start, end, completed;
    std::uint32_t device, context, stream;
    std::uint8_t shape[40];
    std::uint32_t correlation;
    std::uint64_t grid;
    const char* name;
    std::uint8_t more[32];
    std::uint64_t graph_node;
    std::uint32_t memory_size, graph;
};

struct UnifiedMemory {
    std::uint32_t activity, counter;
    std::uint64_t value, start, end, address;
    std::uint32_t from_device, to_device, stream, process;
};

struct UnifiedMemoryConfig {
    std::uint32_t scope, counter, device, enable;
};

// What a callback is called with for a call of CUDA.
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

using Subscriber = void*;
using CallFunction = void (*)(void* own, std::uint32_t domain, std::uint32_t id, const void* data);
using BufferNeeded = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
using BufferFilled = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                              std::size_t size, std::size_t valid);

// The facts of the headers of CUPTI 12.0 to 13.5 that the declarations above rely on.
static_assert(offsetof(Copy, bytes) == 8 && offsetof(Copy, start) == 16);
static_assert(offsetof(Copy, end) == 24 && offsetof(Copy, device) == 32);
static_assert(offsetof(Copy, stream) == 40 && offsetof(Copy, correlation) == 44);
static_assert(offsetof(Copy, graph_node) == 64 && offsetof(Copy, graph) == 72);
static_assert(offsetof(Copy, count) == 88);
static_assert(offsetof(PeerCopy, from_device) == 44 && offsetof(PeerCopy, to_device) == 52);
static_assert(offsetof(PeerCopy, correlation) == 60 && offsetof(PeerCopy, graph) == 80);
static_assert(offsetof(Set, bytes) == 8 && offsetof(Set, correlation) == 44);
static_assert(offsetof(Set, flags) == 48 && offsetof(Set, kind) == 50);
static_assert(offsetof(Set, graph) == 72);
static_assert(offsetof(Kernel, start) == 16 && offsetof(Kernel, device) == 40);
static_assert(offsetof(Kernel, stream) == 48 && offsetof(Kernel, correlation) == 92);
static_assert(offsetof(Kernel, name) == 104 && offsetof(Kernel, graph_node) == 144);
static_assert(offsetof(Kernel, graph) == 156);
static_assert(offsetof(UnifiedMemory, value) == 8 && offsetof(UnifiedMemory, from_device) == 40);
static_assert(offsetof(CallData, parameters) == 16 && offsetof(CallData, correlation) == 64);

}  // namespace waywiser::trace::cupti
