// The memory and the file of one thread, and the bytes that it has to have.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/draw.hpp"
#include "gpu/gpu.hpp"

namespace waywiser::fuzz {

// mixed: parts of it are registered, and the registrations change.
enum class RegionKind { pageable, pinned, mixed, managed, device, file };

// A part of a region.
struct Span {
    std::size_t region = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;

    [[nodiscard]] std::size_t end() const { return offset + bytes; }
    [[nodiscard]] bool overlaps(const Span& other) const {
        return region == other.region && offset < other.end() && other.offset < end();
    }
};

// What a copy does with one range.
struct Move {
    Span to, from;
};

struct Difference {
    Span where;  // one byte
    int has = 0, expected = 0;
};

class Memory {
public:
    // Allocates all regions, with `bytes` each at most, and gives them content.
    Memory(int gpus, std::size_t bytes, const std::string& folder, Draw draw);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    [[nodiscard]] std::size_t regions() const { return regions_.size(); }
    [[nodiscard]] RegionKind kind(std::size_t region) const { return regions_[region].kind; }
    [[nodiscard]] int gpu(std::size_t region) const { return regions_[region].gpu; }
    // The most bytes of a region; of the file those that it has.
    [[nodiscard]] std::size_t bytes(std::size_t region) const {
        return regions_[region].expected.size();
    }
    [[nodiscard]] std::size_t most_bytes() const { return most_; }
    [[nodiscard]] std::byte* data(const Span& span) const {
        return regions_[span.region].data + span.offset;
    }
    [[nodiscard]] int file(std::size_t region) const { return regions_[region].file; }
    [[nodiscard]] std::string text(const Span& span) const;
    [[nodiscard]] std::vector<std::size_t> regions_of(std::vector<RegionKind> kinds) const;
    [[nodiscard]] bool on_host(std::size_t region) const;

    // What is expected after a copy, or after the end of a file has changed.
    void expect(const Move& move);
    void expect_file_end(std::size_t region, std::size_t bytes);
    // New content: of the expected bytes, and a copy of it for the thread that writes it.
    std::vector<std::byte> expect_new(const Span& span, Draw& draw);
    // Writes new content at once.
    void write(const Span& span, Draw& draw);

    // The first byte that differs from what is expected.
    [[nodiscard]] std::optional<Difference> difference(const Span& span) const;
    // The same of a whole region; also if a file has another end.
    [[nodiscard]] std::optional<Difference> difference(std::size_t region) const;
    // Expects what is there: after a failure.
    void accept(const Span& span);
    // A number that depends on all bytes that are there.
    [[nodiscard]] std::uint64_t hash(std::size_t region) const;

    // Registers other parts of the mixed region. No copy may use it.
    void register_again(Draw& draw);

private:
    struct Region {
        RegionKind kind = RegionKind::pageable;
        int gpu = -1;
        std::byte* data = nullptr;
        int file = -1;
        std::vector<std::byte> expected;
    };
    void add(RegionKind kind, int gpu, std::byte* data, std::size_t bytes, Draw& draw);
    void add_file(const std::string& folder, std::size_t bytes, Draw& draw);
    [[nodiscard]] std::vector<std::byte> file_content(const Region& region) const;

    std::size_t most_;
    std::vector<std::unique_ptr<std::byte[]>> pageable_;
    std::vector<gpu::HostBuffer> pinned_;
    std::vector<gpu::ManagedBuffer> managed_;
    std::vector<gpu::DeviceBuffer> device_;
    std::vector<gpu::Registration> registrations_;
    std::vector<Region> regions_;
};

}  // namespace waywiser::fuzz
