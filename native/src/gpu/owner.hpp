// What waywiser-owner answers on its output: a fixed size, once.
#pragma once

#include <array>
#include <cstdint>

namespace waywiser::gpu {

inline constexpr const char* kOwnerProgram = "waywiser-owner";

struct OwnerAnswer {
    std::int32_t code = 0;          // of the runtime; 0: the handle is there
    std::array<char, 60> call{};    // that failed, ended by a zero
    std::array<char, 64> handle{};  // cudaIpcMemHandle_t
};

}  // namespace waywiser::gpu
