// Page-locked host memory, which GPUs access directly: pages bound to a NUMA node and then
// registered, since the runtime's own allocator does not bind; or memory from that allocator, in
// pages that it chooses. Small accesses by a GPU can take longer with registered pages
// (docs/methodology.md, 3).
#include "gpu/gpu.hpp"
#include "memory/pages_variant.hpp"
#include "memory/runtime_locked.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

constexpr const char* kFrom = "from";
constexpr const char* kHostAlloc = "host-alloc";

bool from_runtime(const Memory& memory) {
    const auto from = memory.variant.find(kFrom);
    return from != memory.variant.end() && from->second == kHostAlloc;
}

class PinnedBuffer final : public Buffer {
public:
    PinnedBuffer(std::size_t bytes, const NumaNode& node, host::PageSize size, int gpu)
        : pages_(bytes, node, size), registration_(pages_.data(), pages_.bytes(), gpu) {}
    [[nodiscard]] std::byte* data() const override { return pages_.data(); }
    [[nodiscard]] std::size_t bytes() const override { return pages_.bytes(); }
    [[nodiscard]] Placement placement() const override { return pages_.placement(); }

private:
    host::Pages pages_;
    gpu::Registration registration_;
};

class Pinned final : public MemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "pinned",
            .description =
                "page-locked host memory that every GPU reaches: pages bound to their NUMA node "
                "and "
                "registered, or what the runtime allocates",
            .parameters =
                {pages_variant(),
                 {.name = kFrom,
                  .description =
                      "what locks it: the registration of pages that are there "
                      "(cudaHostRegister), or the runtime's allocator, which cannot bind it "
                      "(cudaHostAlloc)",
                  .choices = {"register", kHostAlloc}}},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019; Pearson, thesis, ch. Explicit Memory "
                "Performance (AllocPinned)"};
        return info;
    }
    [[nodiscard]] MemoryTraits traits() const override { return {.reference = PathClass::gpu}; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] bool needs_gpu() const override { return true; }
    [[nodiscard]] bool page_locked() const override { return true; }
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Memory& memory, const Machine& machine) const override {
        if (!from_runtime(memory)) return huge_pages_unsupported_reason(memory);
        if (page_size(memory) == host::PageSize::huge) {
            return "the runtime chooses the pages of what it allocates itself";
        }
        return RuntimeLocked::unsupported_reason(memory, machine);
    }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine& machine) const override {
        const NumaNode& node = *machine.node(memory.place.index);
        if (from_runtime(memory)) {
            return RuntimeLocked::on(node, bytes, gpu::HostUse::portable, machine);
        }
        return std::make_unique<PinnedBuffer>(bytes, node, page_size(memory),
                                              machine.gpus.front().index);
    }
};

const Registered<MemoryKind, Pinned> registered;

}  // namespace
}  // namespace waywiser
