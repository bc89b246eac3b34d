// Page-locked host memory from the runtime's own allocator. It allocates pages on the node of the
// calling thread, and they cannot be bound.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gpu/gpu.hpp"
#include "host/affinity.hpp"
#include "host/node_memory.hpp"
#include "host/pages.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {

class RuntimeLocked final : public Buffer {
public:
    // Returns why a node cannot have any, or nullopt.
    [[nodiscard]] static std::optional<std::string> unsupported_reason(const Memory& memory,
                                                                       const Machine& machine) {
        const NumaNode* const node = machine.node(memory.place.index);
        if (node == nullptr || !node->cpus.empty()) return std::nullopt;
        return "no CPU of " + memory.place.text() +
               " may be used, and what the runtime allocates lies where the allocating thread runs";
    }
    [[nodiscard]] static std::unique_ptr<RuntimeLocked> on(const NumaNode& node, std::size_t bytes,
                                                           gpu::HostUse use,
                                                           const Machine& machine) {
        host::require_free_on_node(node.index, bytes);
        const host::RunOn allocating(
            node.cpus);  // the kernel takes pages of the calling thread's node
        return std::make_unique<RuntimeLocked>(bytes, use, node.index, machine.gpus.front().index);
    }
    RuntimeLocked(std::size_t bytes, gpu::HostUse use, int node, int gpu)
        : memory_(bytes, use, gpu), node_(node) {}
    [[nodiscard]] std::byte* data() const override { return memory_.data(); }
    [[nodiscard]] std::size_t bytes() const override { return memory_.bytes(); }
    [[nodiscard]] Placement placement() const override {
        return host::placement_of(memory_.data(), memory_.bytes(), node_);
    }

private:
    gpu::HostBuffer memory_;
    int node_;
};

}  // namespace waywiser
