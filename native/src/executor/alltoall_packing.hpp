// Ranges of a GPU's memory, packed one after another in host memory. The copies pack.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/alltoall_plan.hpp"

namespace waywiser {

namespace gpu {
class Stream;
}

namespace alltoall {

class Packing {
public:
    // Bytes that several ranges have are packed once.
    explicit Packing(const std::vector<Range>& ranges);

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    // The ranges where they are packed.
    [[nodiscard]] const std::vector<Range>& packed() const { return packed_; }
    // Enqueue the copies.
    void take(std::byte* host, const std::byte* memory, const gpu::Stream& stream) const;
    void put(std::byte* memory, const std::byte* host, const gpu::Stream& stream) const;

private:
    struct Run {
        std::size_t offset = 0;  // in the memory
        std::size_t packed = 0;  // on the host
        std::size_t bytes = 0;
    };
    [[nodiscard]] std::size_t pitch_of_rows() const;

    std::vector<Run> runs_;
    std::vector<Range> packed_;
    std::size_t bytes_ = 0;
    std::size_t pitch_ = 0;  // of runs that are rows of one copy; 0 if they are not
};

}  // namespace alltoall
}  // namespace waywiser
