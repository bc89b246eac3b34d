// What the kernels of a GPU can load from and store to, and what the runtime's copies move.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

bool between_gpus(const Path& path);
// Page-locked or a GPU's own: allocated or registered with the GPU's runtime.
bool known_to_gpus(const Memory& memory);
// Whether each of the two GPUs can access the other's memory.
bool direct_access(const Path& path, const Machine& machine);

// Why kernels of the GPU cannot address the memory.
std::optional<std::string> reach_refusal(const Memory& memory, int gpu, const Machine& machine);
// Why the runtime's copies do not move the memory as it is meant to be measured.
std::optional<std::string> copy_refusal(const Memory& memory);
// Where kernels of the GPU find the bytes, which they can address.
std::byte* reached_at(const View& view, int gpu);

}  // namespace waywiser
