// What is said between this process and waywiser-owner: requests on its input, and an answer to
// each on its output, both of a fixed size.
#pragma once

#include <array>
#include <cstdint>

namespace waywiser::gpu {

inline constexpr const char* kOwnerProgram = "waywiser-owner";

struct OwnerRequest {
    std::uint64_t allocate = 0;  // so many bytes; 0: nothing
    std::uint64_t free = 0;      // the memory at this address of the owner; 0: none
};

struct OwnerAnswer {
    std::int32_t code = 0;          // of the runtime; 0: done
    std::array<char, 60> call{};    // that failed, ended by a zero
    std::array<char, 64> handle{};  // cudaIpcMemHandle_t of what was allocated
    std::uint64_t address = 0;      // of it, in the owner
};

}  // namespace waywiser::gpu
