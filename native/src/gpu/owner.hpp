// The protocol between this process and waywiser-owner: requests on its input, and an answer to
// each on its output, both of a fixed size.
#pragma once

#include <array>
#include <cstdint>

namespace waywiser::gpu {

inline constexpr const char* kOwnerProgram = "waywiser-owner";

struct OwnerRequest {
    std::uint64_t allocate = 0;  // bytes to allocate; 0: none
    std::uint64_t free = 0;      // the owner's address of memory to free; 0: none
};

struct OwnerAnswer {
    std::int32_t code = 0;          // error code of the runtime; 0: success
    std::array<char, 60> call{};    // the call that failed, terminated by a zero
    std::array<char, 64> handle{};  // cudaIpcMemHandle_t of the allocation
    std::uint64_t address = 0;      // of the allocation, in the owner
};

}  // namespace waywiser::gpu
