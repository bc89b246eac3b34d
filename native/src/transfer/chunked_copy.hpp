// A copy of contiguous bytes in chunks, between host memory, GPU memory and files: through pinned
// slots where a GPU does not reach a side, and over the links of other GPUs where asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transfer/engine.hpp"
#include "transfer/file_end.hpp"
#include "transfer/job.hpp"

namespace waywiser::transfer {

// One side of a copy.
struct End {
    enum class Kind { host, device, file };
    Kind kind = Kind::host;
    std::byte* data = nullptr;
    int gpu = -1;         // of device memory
    bool pinned = false;  // of host memory: GPUs reach all of it
    int file = -1;
    std::uint64_t offset = 0;  // in the file

    static End host(void* data, bool pinned);
    static End device(void* data, int gpu);
    static End of_file(int file, std::uint64_t offset);
};

// How it is cut and carried.
struct CopyShape {
    std::size_t chunk = std::size_t{2} << 20;    // at most; a multiple of 4 KiB
    std::size_t least = std::size_t{512} << 10;  // the smallest ones, see Job
    std::size_t threads = 0;                     // at most; 0: all
    std::size_t slots = 2;                       // chunks on their way for each thread or relay
    bool streaming = false;                      // stores to host memory go around the caches
    bool direct_io = true;                       // files that are not cached: around the page cache
    bool sync = false;                           // a file is on its disk at the end
    bool direct_route = true;                    // the GPU's own link is used too
    std::vector<int> relays;                     // other GPUs that chunks go through
};

class ChunkedCopy final : public Job {
public:
    // Enables peer access between the GPU and its relays; a relay without it is left out. The
    // engine outlives the job.
    ChunkedCopy(Engine& engine, const End& to, const End& from, std::size_t bytes,
                const CopyShape& shape);

    void fill(Chunk& chunk) override;
    void submit(Chunk& chunk) override;
    void submit_together(std::span<Chunk* const> chunks) override;
    void drain(Chunk& chunk) override;
    [[nodiscard]] bool drains() const override;
    void finish() override;

private:
    [[nodiscard]] bool slotted() const;
    void add_routes(Engine& engine, const CopyShape& shape);
    void copy_to_host(std::byte* to, const std::byte* from, std::size_t bytes) const;

    const End to_;
    const End from_;
    const bool streaming_;
    const bool direct_io_;
    const bool sync_;
    std::optional<FileEnd> source_file_;
    std::optional<FileEnd> target_file_;
};

// Whether the pages of a range do not exist yet, as its first, middle and last one show.
bool is_fresh(const std::byte* data, std::size_t bytes);
// Asks for huge pages in a range whose pages do not exist yet. It may be pageable memory of
// anybody: nothing of its content changes.
void prefer_huge_pages(std::byte* data, std::size_t bytes);
// Copies into host memory whose pages may not exist yet: they are made first, all at once.
void copy_to_fresh(std::byte* to, const std::byte* from, std::size_t bytes, bool streaming);

}  // namespace waywiser::transfer
