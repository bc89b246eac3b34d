// GPU memory, from each of the runtime's allocators.
#include <algorithm>
#include <array>
#include <string>

#include "gpu/gpu.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr const char* kAllocatedBy = "from";

struct Allocator {
    const char* name;
    gpu::DeviceUse use;
    bool gpu::Device::* offered;  // device feature it needs; nullptr if all devices have it
    const char* missing;
};

constexpr std::array<Allocator, 4> kAllocators = {{
    {"malloc", gpu::DeviceUse::plain, nullptr, ""},
    {"pool", gpu::DeviceUse::pool, &gpu::Device::memory_pools, "has no stream-ordered pool"},
    {"vmm", gpu::DeviceUse::mapped, &gpu::Device::vmm, "has no virtual memory management"},
    {"ipc", gpu::DeviceUse::foreign, &gpu::Device::ipc, "shares no memory between processes"},
}};

const Allocator& allocator_of(const Memory& memory) {
    const auto from = memory.variant.find(kAllocatedBy);
    if (from == memory.variant.end()) return kAllocators.front();
    const auto allocator = std::ranges::find_if(
        kAllocators, [&](const Allocator& each) { return from->second == each.name; });
    if (allocator == kAllocators.end())
        throw NotSupported("no allocator of device memory is " + from->second);
    return *allocator;
}

// Only the runtime knows what a device supports, so this fails at allocation.
gpu::DeviceUse use_on(int gpu, const Allocator& allocator) {
    if (allocator.offered != nullptr && !(gpu::device(gpu).*allocator.offered)) {
        throw NotSupported("gpu:" + std::to_string(gpu) + " " + allocator.missing);
    }
    return allocator.use;
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
                {{.name = kAllocatedBy,
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
    [[nodiscard]] MemoryTraits traits() const override { return {.reference = PathClass::gpu}; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] bool cpu_accessible() const override { return false; }
    [[nodiscard]] bool needs_gpu() const override { return true; }
    [[nodiscard]] std::optional<std::string> peer_unsupported_reason(
        const Memory& memory) const override {
        const auto from = memory.variant.find(kAllocatedBy);
        if (from == memory.variant.end() || from->second != "ipc") return std::nullopt;
        return "memory of another process is mapped for kernels of its own GPU alone";
    }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine&) const override {
        const int gpu = memory.place.index;
        return std::make_unique<DeviceMemory>(bytes, gpu, use_on(gpu, allocator_of(memory)));
    }
};

const Registered<MemoryKind, DeviceKind> registered;

}  // namespace
}  // namespace waywiser
