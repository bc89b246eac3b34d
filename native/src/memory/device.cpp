// A GPU's own memory.
#include "gpu/gpu.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class DeviceMemory final : public Buffer {
public:
    DeviceMemory(std::size_t bytes, int gpu) : memory_(gpu, bytes) {}
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
        static const Info info{.name = "device",
                               .description = "a GPU's own memory, from cudaMalloc",
                               .parameters = {},
                               .source = "Pearson et al., Comm|Scope, ICPE 2019"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::gpu};
    }
    [[nodiscard]] bool cpu_accessible() const override { return false; }
    [[nodiscard]] bool needs_gpu() const override { return true; }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine&) const override {
        return std::make_unique<DeviceMemory>(bytes, memory.place.index);
    }
};

const Registered<MemoryKind, DeviceKind> registered;

}  // namespace
}  // namespace waywiser
