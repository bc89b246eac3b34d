// Managed ("unified") memory: one address for all processors; the driver migrates its pages on
// access or on request. It is initially resident at the memory's place.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "gpu/gpu.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// The driver tracks managed memory in blocks of this size.
constexpr std::size_t kGranule = std::size_t{2} << 20;

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Managed memory of this process. All of it may be migrated to any GPU, and an overflow would evict
// other pages during a measurement. So the total must fit into the free memory of the GPU that has
// least. Memory that is already on that GPU is counted twice, to be safe.
class Claim {
public:
    Claim(std::size_t bytes, const Machine& machine) : bytes_(bytes) {
        const std::size_t others = held_.fetch_add(bytes);
        std::size_t free = std::numeric_limits<std::size_t>::max();
        int gpu = -1;
        for (const GpuPlace& place : machine.gpus) {
            const std::size_t here = gpu::free_bytes(place.index);
            if (here < free) {
                free = here;
                gpu = place.index;
            }
        }
        if (bytes <= free && others <= free - bytes) return;
        held_ -= bytes;
        throw NotSupported(mebibytes(bytes) + " of managed memory in addition to " +
                           mebibytes(others) + " do not fit into the " + mebibytes(free) +
                           " free on gpu:" + std::to_string(gpu) +
                           ": ask for smaller sizes or free that GPU");
    }
    ~Claim() { held_ -= bytes_; }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

private:
    static inline std::atomic<std::size_t> held_{0};
    std::size_t bytes_;
};

class ManagedMemory final : public Buffer {
public:
    // Whole granules, plus one: the runtime does not guarantee that memory starts at one.
    ManagedMemory(std::size_t bytes, int gpu, const Machine& machine)
        : bytes_((bytes + kGranule - 1) / kGranule * kGranule),
          claim_(bytes_ + kGranule, machine),
          memory_(bytes_ + kGranule, gpu) {
        const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
        data_ = memory_.data() + (kGranule - start % kGranule) % kGranule;
    }
    [[nodiscard]] std::byte* data() const override { return data_; }
    [[nodiscard]] std::size_t bytes() const override { return bytes_; }
    [[nodiscard]] Placement placement() const override {
        return {.detail =
                    "the runtime says where managed memory was last sent, not where its pages are"};
    }

private:
    std::size_t bytes_;
    Claim claim_;
    gpu::ManagedBuffer memory_;
    std::byte* data_ = nullptr;
};

class Managed final : public MemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "managed",
            .description =
                "unified memory from cudaMallocManaged: one address everywhere, whose pages move "
                "when touched or prefetched",
            .parameters = {advice()},
            .source =
                "Pearson et al., Comm|Scope, ICPE 2019, section 3.4; Pearson et al., NUMA-aware "
                "data-transfer measurements for Power/NVLink systems, 2018"};
        return info;
    }
    [[nodiscard]] MemoryTraits traits() const override { return {.reference = PathClass::unified}; }
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override {
        return {Place::Kind::numa, Place::Kind::gpu};
    }
    // CPUs can access it, but its pages would migrate to them.
    [[nodiscard]] bool cpu_accessible() const override { return false; }
    [[nodiscard]] bool migrates() const override { return true; }
    [[nodiscard]] bool needs_gpu() const override { return true; }
    [[nodiscard]] std::size_t granule() const override { return kGranule; }

    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine& machine) const override {
        const int gpu = memory.on_gpu() ? memory.place.index : machine.gpus.front().index;
        if (!gpu::device(gpu).concurrent_managed) {
            throw NotSupported("gpu:" + std::to_string(gpu) +
                               " does not move managed memory page by page (no concurrent managed "
                               "access)");
        }
        auto buffer = std::make_unique<ManagedMemory>(bytes, gpu, machine);
        const gpu::Location home = memory.on_gpu() ? gpu::Location{.device = memory.place.index}
                                                   : gpu::Location{.node = memory.place.index};
        advise(*buffer, memory, home);
        const gpu::Stream stream(gpu);
        gpu::prefetch_async(buffer->data(), buffer->bytes(), home, stream);
        stream.synchronize();
        return buffer;
    }

private:
    static Parameter advice() {
        return {
            .name = "advice",
            .description =
                "what the driver is advised: nothing, that its place is the preferred location, "
                "that it is mostly read (copies instead of moves), or that its place accesses "
                "it (keeps its mappings)",
            .choices = {"none", "preferred", "read-mostly", "accessed-by"}};
    }
    static void advise(const Buffer& buffer, const Memory& memory, gpu::Location home) {
        const auto it = memory.variant.find("advice");
        if (it == memory.variant.end() || it->second == "none") return;
        if (it->second == "preferred") {
            gpu::advise(buffer.data(), buffer.bytes(), gpu::Advice::preferred_location, home);
        } else if (it->second == "read-mostly") {
            gpu::advise(buffer.data(), buffer.bytes(), gpu::Advice::read_mostly, home);
        } else {
            gpu::advise(buffer.data(), buffer.bytes(), gpu::Advice::accessed_by, home);
        }
    }
};

const Registered<MemoryKind, Managed> registered;

}  // namespace
}  // namespace waywiser
