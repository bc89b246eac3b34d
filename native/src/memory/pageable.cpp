// Ordinary host memory, as from malloc: the system may move or swap its pages.
#include "memory/pages_variant.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class PageableBuffer final : public Buffer {
public:
    PageableBuffer(std::size_t bytes, const NumaNode& node, host::PageSize size)
        : pages_(bytes, node, size) {}
    [[nodiscard]] std::byte* data() const override { return pages_.data(); }
    [[nodiscard]] std::size_t bytes() const override { return pages_.bytes(); }
    [[nodiscard]] Placement placement() const override { return pages_.placement(); }

private:
    host::Pages pages_;
};

class Pageable final : public MemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "pageable",
            .description = "ordinary host memory, bound to its NUMA node and first touched there",
            .parameters = {pages_variant()},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019; Pearson, thesis, ch. Explicit Memory "
                "Performance (AllocPageable)"};
        return info;
    }
    [[nodiscard]] MemoryTraits traits() const override { return {.reference = PathClass::host}; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa};
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(const Memory& memory,
                                                                const Machine&) const override {
        return huge_pages_unsupported_reason(memory);
    }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine& machine) const override {
        return std::make_unique<PageableBuffer>(bytes, *machine.node(memory.place.index),
                                                page_size(memory));
    }
};

const Registered<MemoryKind, Pageable> registered;

}  // namespace
}  // namespace waywiser
