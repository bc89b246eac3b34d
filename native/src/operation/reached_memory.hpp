// Memory that a GPU reaches by itself: its own, another GPU's, or page-locked memory of the host.
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
    // Throws Refused in a process without the peer access that it needs, gpu::Error,
    // std::bad_alloc.
    ReachedMemory(int gpu, const Memory& memory, std::size_t bytes, const Machine& machine,
                  OperationTools& tools);
    [[nodiscard]] std::byte* data() const { return data_; }  // as kernels of the GPU find it

    // Places whose memory the GPU reaches: its own first, then the host's, then those of peers.
    static std::vector<std::string> places(int gpu, const Machine& machine);
    // The memory that such a place stands for: of the host, pages that are bound to the node and
    // registered.
    static Memory at(const Place& place);

private:
    std::unique_ptr<Buffer> buffer_;
    std::byte* data_;
};

}  // namespace waywiser
