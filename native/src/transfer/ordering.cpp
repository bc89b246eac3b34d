#include "transfer/ordering.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "host/relax.hpp"
#include "transfer/describe.hpp"

namespace waywiser::transfer {
namespace {

constexpr auto kFirstLook = std::chrono::microseconds(30);

}  // namespace

Ordering ordering(const Engine& engine, const CallerStream& stream, int operand) {
    if (stream.none) {
        if (operand < 0) return {};
        throw InvalidCopy("a copy of GPU memory has to be ordered in a stream: pass one, or NULL");
    }
    if (engine.machine().gpus.empty()) return {};
    CallerStream used = stream;
    if (operand < 0 && stream.is_default() && stream.gpu < 0 && !gpu::has_context()) {
        // The runtime means the first GPU then. Without a context it has no work.
        const std::vector<int> active = gpu::active_devices();
        if (std::ranges::find(active, 0) == active.end()) return {};
        used.gpu = 0;
    }
    if (used.is_default() && used.gpu >= 0) {
        return {gpu::Stream(used.gpu, used.handle), gpu::capturing(used.handle)};
    }
    const gpu::StreamInfo info = gpu::stream_info(stream.handle, std::max(operand, 0));
    if (!info.primary) {
        throw NotSupported(
            "the stream belongs to a CUDA context that is not the primary context of its GPU: "
            "use a stream of the runtime");
    }
    return {gpu::Stream(info.device, stream.handle), info.capturing};
}

std::optional<gpu::Event> after(const Ordering& order, const CallerStream& stream) {
    if (!order.stream) return std::nullopt;
    if (!stream.is_legacy() && order.stream->done()) return std::nullopt;
    gpu::Event event(order.stream->device(), gpu::EventUse::ordering);
    event.record(*order.stream);
    return event;
}

std::optional<gpu::Event> after_a_look(const Ordering& order, const CallerStream& stream) {
    std::optional<gpu::Event> event = after(order, stream);
    const auto end = std::chrono::steady_clock::now() + kFirstLook;
    while (event && std::chrono::steady_clock::now() < end) {
        if (event->done()) return std::nullopt;
        host::relax();
    }
    return event;
}

void drain(const Ordering& order) noexcept {
    if (!order.stream || order.capturing) return;
    try {
        order.stream->synchronize();
    } catch (const gpu::Error&) {  // its context is lost
    }
}

void drain(const Engine& engine, const CallerStream& stream) noexcept {
    try {
        drain(ordering(engine, stream, 0));
    } catch (const std::exception&) {
        return;  // the stream cannot be queried
    }
}

void reject_capture() {
    throw NotSupported(
        "the stream is being captured: only copies between device and pinned memory can be "
        "recorded; copy before the capture, or pin the memory (pinned_empty)");
}

void plain_copy(const Side& to, const Side& from, std::size_t bytes, const Ordering& order) {
    if (!order.stream) {
        std::memcpy(to.end.data, from.end.data, bytes);
        return;
    }
    if (to.uniform && from.uniform) {
        gpu::copy_async(to.end.data, from.end.data, bytes, *order.stream);
        return;
    }
    std::size_t at = 0;
    try {
        for (const Segment& out : segments(to.end.data, bytes)) {
            for (const Segment& in : segments(from.end.data + at, out.bytes)) {
                gpu::copy_async(to.end.data + at, in.data, in.bytes, *order.stream);
                at += in.bytes;
            }
        }
    } catch (const gpu::Error&) {
        try {
            if (at > 0) order.stream->synchronize();  // the pieces before
        } catch (const gpu::Error&) {                 // lost: it uses nothing any more
        }
        throw;
    }
}

void run_after(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
               std::optional<gpu::Event> event) {
    const bool ends = job->drains() || !order.stream;
    engine.run(job, ends ? Engine::Until::done : Engine::Until::submitted, std::move(event));
    if (ends) return;
    try {
        job->order(*order.stream);
    } catch (const gpu::Error&) {
        job->wait();  // it cannot be ordered, but is at least done
        throw;
    }
}

void run_ordered(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
                 const CallerStream& stream) {
    run_after(engine, job, order, after_a_look(order, stream));
}

}  // namespace waywiser::transfer
