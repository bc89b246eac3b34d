// Page-locked host memory that CPUs do not cache: they write it in bursts, but read it very slowly.
// Only the runtime can allocate it.
#include "memory/runtime_locked.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

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
    [[nodiscard]] MemoryTraits traits() const override { return {.same_as = "pinned"}; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] bool needs_gpu() const override { return true; }
    [[nodiscard]] bool page_locked() const override { return true; }
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Memory& memory, const Machine& machine) const override {
        return RuntimeLocked::unsupported_reason(memory, machine);
    }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine& machine) const override {
        return RuntimeLocked::on(*machine.node(memory.place.index), bytes,
                                 gpu::HostUse::write_combined, machine);
    }
};

const Registered<MemoryKind, WriteCombined> registered;

}  // namespace
}  // namespace waywiser
