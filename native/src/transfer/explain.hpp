// Describes how a copy would be made.
#pragma once

#include <cstddef>
#include <string>

#include "transfer/copy_method.hpp"
#include "transfer/engine.hpp"
#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

// One line: the method, why, and what the policy expects. Throws InvalidCopy.
std::string explain(Engine& engine, const void* to, const void* from, std::size_t bytes);
// The method itself. `bytes` is not 0.
Choice choice_of(Engine& engine, const void* to, const void* from, std::size_t bytes);

// A line for each method that moves some pieces of a list, joined by line feeds. Throws
// InvalidCopy.
std::string explain(Engine& engine, CopyList list);

}  // namespace waywiser::transfer
