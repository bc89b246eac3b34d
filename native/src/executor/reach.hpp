// What GPU kernels can access, and what the runtime's copies can move.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

bool between_gpus(const Path& path);
// Whether memory is page-locked or on a GPU: allocated by or registered with the GPU runtime.
bool known_to_gpus(const Memory& memory);
// Whether each of the two GPUs can access the other's memory.
bool direct_access(const Path& path, const Machine& machine);
bool direct_access(int one, int other, const Machine& machine);

// Returns why kernels of the GPU cannot address the memory, or nullopt.
std::optional<std::string> reach_unsupported_reason(const Memory& memory, int gpu,
                                                    const Machine& machine);
// Returns why the runtime's copies do not support the memory, or nullopt.
std::optional<std::string> copy_unsupported_reason(const Memory& memory);
// The address at which kernels of the GPU access the view.
std::byte* reached_at(const View& view, int gpu);

}  // namespace waywiser
