// How a copy is made: by one call of the runtime, or in chunks and with which parameters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "transfer/chunked_copy.hpp"
#include "transfer/engine.hpp"
#include "transfer/side.hpp"

namespace waywiser::transfer {

struct PolicyDecision;

// The chosen method of a copy.
struct Choice {
    enum class Method { plain, chunked };
    Method method = Method::plain;
    CopyShape shape;
    std::string why;                         // one-line explanation
    const PolicyDecision* policy = nullptr;  // what decided; nullptr: the defaults
};
// Chooses by the policy, or safe defaults. Does not call the GPU runtime and changes nothing.
// `recorded`: into a graph, which has copies of the runtime alone.
Choice choose(const Engine& engine, const Side& to, const Side& from, std::size_t bytes,
              bool recorded = false);

// The shape of a chunked copy without a policy: the default settings of executors are those of
// large copies. `threads`: maximum number of threads; `relays`: other GPUs whose links help.
CopyShape default_shape(const Endpoint& to, const Endpoint& from, std::size_t bytes,
                        std::size_t threads, const std::vector<int>& relays = {});

// The shape of a copy between memory and a file. `reads`: the file is the source.
CopyShape file_shape(const Engine& engine, std::size_t bytes, const Side& memory, bool reads);

}  // namespace waywiser::transfer
