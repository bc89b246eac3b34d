// Describes how a copy would be made.
#pragma once

#include <cstddef>
#include <string>

#include "transfer/engine.hpp"

namespace waywiser::transfer {

// One line: the method, why, and what the policy expects. Throws InvalidCopy.
std::string explain(Engine& engine, const void* to, const void* from, std::size_t bytes);

}  // namespace waywiser::transfer
