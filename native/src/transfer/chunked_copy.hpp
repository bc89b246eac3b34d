// A copy of contiguous bytes in chunks, between host memory, GPU memory and files: through pinned
// slots if a GPU cannot access a side, and optionally over the links of other GPUs.
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
struct Endpoint {
    enum class Kind { host, device, file };
    Kind kind = Kind::host;
    std::byte* data = nullptr;
    int gpu = -1;         // the GPU of device memory
    bool pinned = false;  // for host memory: GPUs can access all of it
    int file = -1;
    std::uint64_t offset = 0;  // in the file

    static Endpoint host(void* data, bool pinned);
    static Endpoint device(void* data, int gpu);
    static Endpoint of_file(int file, std::uint64_t offset);
};

// Parameters of a chunked copy.
struct CopyShape {
    std::size_t chunk = std::size_t{2} << 20;    // a GPU copies at once; a multiple of 4 KiB
    std::size_t least = std::size_t{128} << 10;  // a CPU copies at once, or less: a part of a chunk
    std::size_t threads = 0;                     // maximum number of threads; 0: all
    std::size_t slots = 2;                       // chunks in flight per thread or link
    bool own_slots = true;                       // each thread fills slots of its own for a GPU
    bool streaming = false;                      // non-temporal stores to host memory
    bool stream_slots = false;                   // the same to slots that a GPU reads
    bool direct_io = true;                       // O_DIRECT for file pages that are not cached
    bool sync = false;                           // fdatasync a written file at the end
    bool truncate = false;                       // a written file ends with the last byte
    bool direct_route = true;                    // also use the GPU's own link
    std::vector<int> relays;                     // other GPUs whose links carry chunks
};

// How a file at the end of a copy is written.
Writing writing_of(const Endpoint& to, const CopyShape& shape);

class ChunkedCopy final : public Job {
public:
    // Enables peer access between the GPU and its relays, and skips relays without it. The engine
    // must outlive the job.
    ChunkedCopy(Engine& engine, const Endpoint& to, const Endpoint& from, std::size_t bytes,
                const CopyShape& shape);

    void fill(const Part& part, std::byte* slot) override;
    void submit(std::span<const Submission> made) override;
    void drain(const Part& part, const std::byte* slot) override;
    void finish() override;

private:
    void add_routes(Engine& engine, const CopyShape& shape, bool through_host);
    void submit_one(const Submission& made);
    void read(const Part& part, std::byte* into, bool padded);

    const Endpoint to_;
    const Endpoint from_;
    const bool streaming_;
    const bool stream_slots_;
    const bool direct_io_;
    const bool sync_;
    const bool truncate_;
    const bool submits_together_;  // by one call of the driver
    std::optional<FileEnd> source_file_;
    std::optional<FileEnd> target_file_;
};

// Whether the pages of a range do not exist yet, by its first, middle and last page.
bool is_fresh(const std::byte* data, std::size_t bytes);
// Requests huge pages for a range whose pages do not exist yet. Keeps the content of the range.
void prefer_huge_pages(std::byte* data, std::size_t bytes);
// Copies into host memory whose pages may not exist yet: creates all of them first.
void copy_to_fresh(std::byte* to, const std::byte* from, std::size_t bytes, bool streaming);

}  // namespace waywiser::transfer
