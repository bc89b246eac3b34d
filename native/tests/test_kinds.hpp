// An executor and a memory kind for tests: an in-place executor, and memory whose second transfer
// differs from the first.
#pragma once

#include <cstddef>

namespace waywiser::test {

// Inverts bytes in place and is not repeatable; from pageable to pageable memory. A start without a
// restore since the last one throws std::logic_error.
inline constexpr const char* kTurner = "test-turner";
// Host memory that is used up by reading, in large granules.
inline constexpr const char* kFading = "test-fading";
inline constexpr std::size_t kFadingGranule = std::size_t{2} << 20;

// Registers both at the first call, since other tests iterate over all registered ones.
void register_kinds();

// Counts of calls on both since the last reset_kind_calls().
struct KindCalls {
    std::size_t restores = 0;  // of executions
    std::size_t starts = 0;
    std::size_t buffer_restores = 0;
    std::size_t largest_restore = 0;  // bytes
    bool spoils = false;              // a start changes a byte,
    bool spoils_others = false;       // or only one on another slice than the first
};
KindCalls& kind_calls();
void reset_kind_calls();

}  // namespace waywiser::test
