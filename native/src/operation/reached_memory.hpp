// Memory that a GPU can access directly: its own, another GPU's, or page-locked host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/memory.hpp"
#include "waywiser/operation.hpp"

namespace waywiser {

class ReachedMemory {
public:
    // Throws NotSupported in a process without the required peer access, gpu::Error,
    // std::bad_alloc.
    ReachedMemory(int gpu, const Memory& memory, std::size_t bytes, const Machine& machine,
                  OperationTools& tools);
    [[nodiscard]] std::byte* data() const { return data_; }  // the address for kernels of the GPU

    // Places whose memory the GPU can access: its own first, then the host's, then those of peers.
    static std::vector<std::string> places(int gpu, const Machine& machine);
    // The memory at such a place; on the host, registered pages that are bound to the node.
    static Memory at(const Place& place);

private:
    std::unique_ptr<Buffer> buffer_;
    std::byte* data_;
};

}  // namespace waywiser
