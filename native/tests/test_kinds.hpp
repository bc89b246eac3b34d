// An executor and a memory kind that exist for tests: they stand for what changes bytes' places
// without moving them, and for what is not the same a second time.
#pragma once

#include <cstddef>

namespace waywiser::test {

// Turns bytes over where they are: in place and not repeatable, from pageable to pageable memory.
// A start without a restore since the last one throws std::logic_error.
inline constexpr const char* kTurner = "test-turner";
// Host memory that fades by being read; in large granules.
inline constexpr const char* kFading = "test-fading";
inline constexpr std::size_t kFadingGranule = std::size_t{2} << 20;

// Makes them known, from the first call on: other tests go through all that are.
void register_kinds();

// What was asked of both since the last reset_asked().
struct Asked {
    std::size_t restores = 0;  // of executions
    std::size_t starts = 0;
    std::size_t buffer_restores = 0;
    std::size_t largest_restore = 0;  // bytes
    bool spoils = false;              // a start changes a byte,
    bool spoils_others = false;       // or only one on another piece than the first does
};
Asked& asked();
void reset_asked();

}  // namespace waywiser::test
