#include "operation/reached_memory.hpp"

#include "gpu/gpu.hpp"

namespace waywiser {

ReachedMemory::ReachedMemory(int gpu, const Memory& memory, std::size_t bytes,
                             const Machine& machine, OperationTools& tools) {
    const bool on_gpu = memory.place.kind == Place::Kind::gpu;
    if (on_gpu && memory.place.index != gpu) tools.let_reach(gpu, memory.place.index);
    buffer_ = Memories::instance().find(memory.kind)->allocate(memory, bytes, machine);
    data_ = on_gpu ? buffer_->data() : gpu::device_address(buffer_->data(), gpu);
}

Memory ReachedMemory::at(const Place& place) {
    return {place.kind == Place::Kind::gpu ? "device" : "pinned", place, {}};
}

std::vector<std::string> ReachedMemory::places(int gpu, const Machine& machine) {
    std::vector<std::string> places{Place{Place::Kind::gpu, gpu, {}}.text()};
    for (const NumaNode& node : machine.numa) {
        places.push_back(Place{Place::Kind::numa, node.index, {}}.text());
    }
    if (const GpuPlace* here = machine.gpu(gpu)) {
        for (const int peer : here->peers) {
            if (machine.gpu(peer) == nullptr) continue;
            places.push_back(Place{Place::Kind::gpu, peer, {}}.text());
        }
    }
    return places;
}

}  // namespace waywiser
