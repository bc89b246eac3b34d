// Page-locked host memory that the CPU does not cache: it can write it in bursts and hardly read
// it. Only the runtime can allocate it, so it lies where the allocating thread ran.
#include "gpu/gpu.hpp"
#include "host/affinity.hpp"
#include "host/pages.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class WriteCombinedBuffer final : public Buffer {
public:
    WriteCombinedBuffer(std::size_t bytes, int node, int gpu)
        : memory_(bytes, gpu::HostUse::write_combined, gpu), node_(node) {}
    [[nodiscard]] std::byte* data() const override { return memory_.data(); }
    [[nodiscard]] std::size_t bytes() const override { return memory_.bytes(); }
    [[nodiscard]] Placement placement() const override {
        return host::placement_of(memory_.data(), memory_.bytes(), node_);
    }

private:
    gpu::HostBuffer memory_;
    int node_;
};

class WriteCombined final : public MemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "write-combined",
            .description =
                "page-locked host memory that the CPU writes in bursts and does not cache",
            .parameters = {},
            .source = "Pearson, thesis, ch. Explicit Memory Performance (AllocWriteCombined)"};
        return info;
    }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] bool needs_gpu() const override { return true; }
    [[nodiscard]] bool page_locked() const override { return true; }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine& machine) const override {
        const NumaNode& node = *machine.node(memory.place.index);
        const host::RunOn allocating(node.cpus);  // the kernel takes pages near the caller
        return std::make_unique<WriteCombinedBuffer>(bytes, node.index, machine.gpus.front().index);
    }
};

const Registered<MemoryKind, WriteCombined> registered;

}  // namespace
}  // namespace waywiser
