// The calls of CUDA that are observed, by their numbers in CUPTI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trace/activity.hpp"
#include "trace/cupti_abi.hpp"

namespace waywiser::trace {

struct ApiCall {
    std::uint32_t id = 0;
    CallKind kind = CallKind::Copy;
    bool asynchronous = false;
    // Which of both sides is of the host. Unless unknown, the parameters begin with to, from,
    // bytes.
    enum class Host : std::uint8_t { Unknown, None, From, To, ByKind } host = Host::Unknown;
};

std::span<const ApiCall> driver_calls();
std::span<const ApiCall> runtime_calls();
// Null: not observed.
const ApiCall* find_call(std::uint32_t domain, std::uint32_t id);

struct HostRange {
    const void* data = nullptr;  // null: unknown
    std::uint64_t bytes = 0;
};
// The memory of the host in a copy that is about to begin.
HostRange host_range(const ApiCall& call, const void* parameters);
// Both addresses of a copy; null: unknown.
struct CopyAddresses {
    const void* to = nullptr;
    const void* from = nullptr;
};
CopyAddresses copy_addresses(const ApiCall& call, const void* parameters);
// The size in the parameters of an allocation or registration of pinned memory.
std::uint64_t pinned_bytes(const void* parameters);

}  // namespace waywiser::trace
