// A GPU's own memory, from each of the allocators that there are.
#include "gpu/gpu.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr const char* kFrom = "from";

gpu::DeviceUse use_of(const Memory& memory) {
    const auto from = memory.variant.find(kFrom);
    if (from == memory.variant.end() || from->second == "malloc") return gpu::DeviceUse::plain;
    if (from->second == "pool") return gpu::DeviceUse::pool;
    return from->second == "vmm" ? gpu::DeviceUse::mapped : gpu::DeviceUse::foreign;
}

class DeviceMemory final : public Buffer {
public:
    DeviceMemory(std::size_t bytes, int gpu, gpu::DeviceUse use) : memory_(gpu, bytes, use) {}
    [[nodiscard]] std::byte* data() const override { return memory_.data(); }
    [[nodiscard]] std::size_t bytes() const override { return memory_.bytes(); }
    [[nodiscard]] Placement placement() const override {
        return {.state = Placement::State::verified, .fraction_on_place = 1, .detail = {}};
    }

private:
    gpu::DeviceBuffer memory_;
};

class DeviceKind final : public MemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "device",
            .description = "a GPU's own memory",
            .parameters =
                {{.name = kFrom,
                  .description =
                      "what allocates it: cudaMalloc, the stream-ordered pool (cudaMallocAsync), "
                      "virtual memory management (cuMemCreate and a mapping), or another process "
                      "whose handle is opened (cudaIpcOpenMemHandle)",
                  .choices = {"malloc", "pool", "vmm", "ipc"}}},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019; CUDA Programming Guide, chapters on "
                "the stream-ordered memory allocator, virtual memory management and "
                "interprocess communication"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] bool cpu_accessible() const override { return false; }
    [[nodiscard]] bool needs_gpu() const override { return true; }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine&) const override {
        return std::make_unique<DeviceMemory>(bytes, memory.place.index, use_of(memory));
    }
};

const Registered<MemoryKind, DeviceKind> registered;

}  // namespace
}  // namespace waywiser
