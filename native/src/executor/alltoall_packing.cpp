#include "executor/alltoall_packing.hpp"

#include <algorithm>
#include <numeric>

#include "gpu/gpu.hpp"

namespace waywiser::alltoall {

Packing::Packing(const std::vector<Range>& ranges) : packed_(ranges.size()) {
    std::vector<std::size_t> order(ranges.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t n) { return ranges[n].offset; });
    for (const std::size_t n : order) {
        const Range& range = ranges[n];
        if (range.bytes == 0) continue;
        // A range that begins within a run, or where it ends, prolongs it.
        if (runs_.empty() || range.offset > runs_.back().offset + runs_.back().bytes) {
            runs_.push_back({range.offset, bytes_, 0});
        }
        Run& run = runs_.back();
        packed_[n] = {run.packed + (range.offset - run.offset), range.bytes};
        run.bytes = std::max(run.bytes, range.offset + range.bytes - run.offset);
        bytes_ = run.packed + run.bytes;
    }
    pitch_ = pitch_of_rows();
}

std::size_t Packing::pitch_of_rows() const {
    if (runs_.size() < 2) return 0;
    const std::size_t pitch = runs_[1].offset - runs_[0].offset;
    for (std::size_t n = 1; n < runs_.size(); ++n) {
        if (runs_[n].bytes != runs_[0].bytes) return 0;
        if (runs_[n].offset - runs_[n - 1].offset != pitch) return 0;
    }
    return pitch;
}

void Packing::take(std::byte* host, const std::byte* memory, const gpu::Stream& stream) const {
    if (pitch_ == 0) {
        for (const Run& run : runs_) {
            gpu::copy_async(host + run.packed, memory + run.offset, run.bytes, stream);
        }
        return;
    }
    const auto [offset, packed, width] = runs_.front();
    // The type of a side that is only read is that of one that is written.
    auto* const from = const_cast<std::byte*>(memory) + offset;
    gpu::copy_rows_async({host, width}, {from, pitch_}, width, runs_.size(), stream);
}

void Packing::put(std::byte* memory, const std::byte* host, const gpu::Stream& stream) const {
    if (pitch_ == 0) {
        for (const Run& run : runs_) {
            gpu::copy_async(memory + run.offset, host + run.packed, run.bytes, stream);
        }
        return;
    }
    const auto [offset, packed, width] = runs_.front();
    auto* const from = const_cast<std::byte*>(host);
    gpu::copy_rows_async({memory + offset, pitch_}, {from, width}, width, runs_.size(), stream);
}

}  // namespace waywiser::alltoall
