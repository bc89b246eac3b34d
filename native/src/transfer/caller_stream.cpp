#include "transfer/caller_stream.hpp"

#include <cstdint>

#include "waywiser/transfer.h"

namespace waywiser::transfer {

CallerStream CallerStream::of(void* given) {
    constexpr std::uintptr_t kKind = 0xff;
    constexpr std::uintptr_t kMostGpus = 256;
    const auto value = reinterpret_cast<std::uintptr_t>(given);
    if (given == WAYWISER_NO_STREAM) return {.none = true};
    const std::uintptr_t kind = value & kKind;
    const std::uintptr_t gpu = value >> 8;
    if ((kind == 1 || kind == 2) && gpu >= 1 && gpu <= kMostGpus) {
        return {reinterpret_cast<void*>(kind), static_cast<int>(gpu) - 1};
    }
    return {given, -1};
}

bool CallerStream::is_default() const { return reinterpret_cast<std::uintptr_t>(handle) <= 2; }
bool CallerStream::is_per_thread() const { return is_default() && !is_legacy(); }
bool CallerStream::is_legacy() const { return reinterpret_cast<std::uintptr_t>(handle) <= 1; }

}  // namespace waywiser::transfer
