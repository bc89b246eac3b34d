// Copies of bytes that are not contiguous: boxes of pitched arrays, and batches of runs.
#include <algorithm>
#include <numeric>

#include "copy_work.hpp"
#include "handles.hpp"
#include "many_bytes.hpp"

namespace waywiser::gpu {
namespace {

using fake::Context;
using fake::Copy;
using fake::Effects;
using fake::Point;
using fake::Side;

constexpr int kInvalidPitch = 12;
constexpr int kNotSupported = 801;
constexpr int kCaptureUnsupported = 900;

std::size_t bytes_of(const Box& box) { return box.width * box.height * box.depth; }

// From a side's first byte to one past its last.
std::size_t extent(const Pitched& side, const Box& box) {
    if (bytes_of(box) == 0) return 0;
    return ((box.depth - 1) * side.rows + box.height - 1) * side.pitch + box.width;
}

std::byte* row(const Pitched& side, std::size_t y, std::size_t z) {
    return static_cast<std::byte*>(side.data) + (z * side.rows + y) * side.pitch;
}

Copy known(const Pitched& destination, const Pitched& source, const Box& box, const char* call) {
    for (const Pitched& side : {destination, source}) {
        if (box.width > side.pitch) {
            throw Error(Failure::other, call, kInvalidPitch, "cudaErrorInvalidPitchValue");
        }
        if (box.depth > 1 && box.height > side.rows) fake::reject_value(call);
    }
    const auto& ranges = fake::Ranges::instance();
    const auto move = [=] {
        for (std::size_t z = 0; z < box.depth; ++z) {
            for (std::size_t y = 0; y < box.height; ++y) {
                test::copy_bytes(row(destination, y, z), row(source, y, z), box.width);
            }
        }
    };
    Copy copy{.bytes = bytes_of(box),
              .to = ranges.side(destination.data, extent(destination, box), call),
              .from = ranges.side(source.data, extent(source, box), call),
              .move = move,
              .contiguous = false};
    if (copy.bytes != 0) {
        copy.last = static_cast<std::byte*>(destination.data) + extent(destination, box) - 1;
    }
    return copy;
}

}  // namespace

void copy_box_async(Pitched destination, Pitched source, Box box, const Stream& stream) {
    constexpr const char* kCall = "cudaMemcpy3DAsync";
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes_of(box));
    fake::enqueue(known(destination, source, box, kCall), effects, stream);
}

void copy_box_peer_async(Pitched destination, int destination_device, Pitched source,
                         int source_device, Box box, const Stream& stream) {
    constexpr const char* kCall = "cudaMemcpy3DPeerAsync";
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes_of(box));
    const Copy copy = known(destination, source, box, kCall);
    if (copy.bytes != 0 &&
        (copy.to.device != destination_device || copy.from.device != source_device)) {
        fake::reject_device(kCall);
    }
    fake::enqueue(copy, effects, stream);
}

void copy_rows_async(Pitched destination, Pitched source, std::size_t width, std::size_t height,
                     const Stream& stream) {
    constexpr const char* kCall = "cudaMemcpy2DAsync";
    const Effects effects = Context::instance().pass(Point::copy, kCall, width * height);
    fake::enqueue(known(destination, source, {width, height, 1}, kCall), effects, stream);
}

bool has_batch() { return !Context::instance().options()->without.contains("batch"); }

void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources, std::size_t bytes, bool stream_order,
                      const Stream& stream) {
    copy_batch_async(destinations, sources, std::vector<std::size_t>(destinations.size(), bytes),
                     stream_order, stream);
}

void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources,
                      const std::vector<std::size_t>& sizes, bool, const Stream& stream) {
    constexpr const char* kCall = "cudaMemcpyBatchAsync";
    const std::size_t count = sizes.size();
    if (!has_batch()) {
        throw Error(Failure::other, kCall, kNotSupported, "cudaErrorNotSupported");
    }
    if (fake::thread_of(stream).capturing()) {
        throw Error(Failure::other, kCall, kCaptureUnsupported,
                    "cudaErrorStreamCaptureUnsupported");
    }
    const std::size_t bytes = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    const Effects effects = Context::instance().pass(Point::copy, kCall, bytes);
    if (fake::is_legacy_stream(stream.handle()) || destinations.size() != count ||
        sources.size() != count || count == 0 || std::ranges::find(sizes, 0U) != sizes.end()) {
        fake::reject_value(kCall);
    }
    const auto& ranges = fake::Ranges::instance();
    Copy copy{.bytes = bytes, .contiguous = false};
    // One pageable piece makes the batch as slow and blocking as if all were pageable.
    for (std::size_t i = 0; i < count; ++i) {
        const Side to = ranges.side(destinations[i], sizes[i], kCall);
        const Side from = ranges.side(sources[i], sizes[i], kCall);
        if (i == 0 || to.pageable()) copy.to = to;
        if (i == 0 || from.pageable()) copy.from = from;
    }
    copy.move = [=] {
        for (std::size_t i = 0; i < count; ++i)
            test::copy_bytes(destinations[i], sources[i], sizes[i]);
    };
    copy.last = static_cast<std::byte*>(destinations.back()) + sizes.back() - 1;
    copy.pieces_seconds = static_cast<double>(count) * Context::instance().options()->piece_seconds;
    fake::enqueue(copy, effects, stream);
}

}  // namespace waywiser::gpu
