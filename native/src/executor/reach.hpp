// What the kernels of a GPU can load from and store to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "waywiser/executor.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

bool between_gpus(const Path& path);
// Whether each of the two GPUs can access the other's memory.
bool direct_access(const Path& path, const Machine& machine);

// Why kernels of the GPU cannot address the memory.
std::optional<std::string> reach_refusal(const Memory& memory, int gpu, const Machine& machine);
// Where they find the bytes, which they can address.
std::byte* reached_at(const View& view, int gpu);

}  // namespace waywiser
