#include "transfer/ordering.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "transfer/describe.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {
namespace {

constexpr double kIdleSeconds = 30e-6;
constexpr Polling kIdle{.spin = std::chrono::milliseconds(1),
                        .pause = std::chrono::nanoseconds(0),
                        .sleep = std::chrono::microseconds(10)};

// See plain_copy().
void copy_plainly(const Side& to, const Side& from, std::size_t bytes, const Ordering& order) {
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
        if (at > 0) rethrow_when_settled(*order.stream);  // the pieces before
        throw;
    }
}

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
        return {gpu::Stream(used.gpu, used.handle), gpu::capturing(used.handle), &engine.events()};
    }
    const gpu::StreamInfo info = gpu::stream_info(stream.handle, std::max(operand, 0));
    if (!info.primary) {
        throw NotSupported(
            "the stream belongs to a CUDA context that is not the primary context of its GPU: "
            "use a stream of the runtime");
    }
    return {gpu::Stream(info.device, stream.handle), info.capturing, &engine.events()};
}

CallerStream with_its_gpu(const CallerStream& stream, int operand) {
    CallerStream used = stream;
    if (stream.none || !stream.is_default() || stream.gpu >= 0) return used;
    if (!gpu::has_context()) {
        used.gpu = operand;
        return used;
    }
    const gpu::StreamInfo info = gpu::stream_info(stream.handle, std::max(operand, 0));
    if (info.primary) used.gpu = info.device;
    return used;
}

std::shared_ptr<gpu::Event> recorded(const Ordering& order) {
    std::shared_ptr<gpu::Event> event = order.events->take(order.stream->device());
    event->record(*order.stream);
    return event;
}

std::shared_ptr<gpu::Event> after(const Ordering& order) {
    if (!order.stream) return nullptr;
    if (!gpu::is_blocking(order.stream->handle()) && order.stream->done()) return nullptr;
    return recorded(order);
}

std::shared_ptr<gpu::Event> event_unless_idle(const Ordering& order) {
    std::shared_ptr<gpu::Event> event = after(order);
    if (event && poll([&] { return event->done(); }, Deadline(kIdleSeconds), kIdle)) {
        return nullptr;
    }
    return event;
}

void rethrow_when_settled(const gpu::Stream& stream) {
    if (settle(stream) != Settled::no) throw;
    try {
        throw;
    } catch (const MemoryInUse&) {
        throw;
    } catch (const std::exception& error) {
        throw MemoryInUse(error.what());
    }
}

void rethrow_when_settled(CopyStreams::Lease& lease) {
    try {
        rethrow_when_settled(*lease);
    } catch (const MemoryInUse&) {
        lease.keep();
        throw;
    }
}

void rethrow_when_settled(const Ordering& order) {
    if (!order.stream || order.capturing) throw;
    rethrow_when_settled(*order.stream);
}

void rethrow_when_settled(const Engine& engine, const CallerStream& stream) {
    const auto known = [&]() -> std::optional<Ordering> {
        try {
            return ordering(engine, stream, 0);
        } catch (const std::exception&) {
            return std::nullopt;  // the stream cannot be queried
        }
    }();
    if (!known) throw;
    rethrow_when_settled(*known);
}

void reject_capture() {
    throw NotSupported(
        "the stream is being captured: only copies between device and pinned memory can be "
        "recorded; copy before the capture, or pin the memory (pinned_empty)");
}

void plain_copy(Engine& engine, const Side& to, const Side& from, std::size_t bytes,
                const Ordering& order) {
    if (order.capturing) return copy_plainly(to, from, bytes, order);
    engine.statistics().count_call(WAYWISER_METHOD_PLAIN, bytes, [&] {
        copy_plainly(to, from, bytes, order);
        return true;
    });
}

bool run_after(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
               std::shared_ptr<const gpu::Event> event, const Deadline& deadline) {
    const bool ends = job->drains() || !order.stream;
    const auto until = ends ? Engine::Until::done : Engine::Until::submitted;
    if (!engine.run(job, until, std::move(event), deadline)) return false;
    if (ends) return true;
    try {
        return job->order(*order.stream, deadline);
    } catch (const gpu::Error&) {
        if (!job->wait(deadline)) return false;  // it cannot be ordered, but is at least done
        throw;
    }
}

bool run_ordered(Engine& engine, const std::shared_ptr<Job>& job, const Ordering& order,
                 const Deadline& deadline) {
    return run_after(engine, job, order, event_unless_idle(order), deadline);
}

}  // namespace waywiser::transfer
