#include "transfer/wait_for_host.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace waywiser::transfer {
namespace {

// A limit of time over several waits.
class Deadline {
public:
    explicit Deadline(double seconds) : seconds_(seconds) {}
    // Seconds that are left; negative: without limit.
    [[nodiscard]] double left() const {
        if (seconds_ < 0) return seconds_;
        const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start_;
        return std::max(seconds_ - gone.count(), 0.0);
    }

private:
    const double seconds_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Waits until the stream has completed its work; false if it has not in time.
bool reaches(const Ordering& order, const CallerStream& stream, double seconds) {
    std::optional<gpu::Event> event = after(order, stream);
    return !event || Started(0, std::move(*event)).wait(seconds);
}

// An event after the work in the stream.
Started marked(const Ordering& order, std::size_t bytes) {
    gpu::Event event(order.stream->device(), gpu::EventUse::ordering);
    event.record(*order.stream);
    return {bytes, std::move(event)};
}

Waited move_and_wait(const CheckedTransfer& transfer, const CallerStream& stream, double seconds) {
    const Deadline deadline(seconds);
    const bool waits = !transfer.order.capturing;
    if (waits && transfer.host.gpus && !transfer.host.cpus) {
        return wait_for_end(transfer.start(), seconds);
    }
    if (waits && transfer.host.cpus && !reaches(transfer.order, stream, seconds)) {
        return {.rest = transfer.start(), .ended = false};
    }
    transfer.run();
    if (waits && transfer.host.gpus && transfer.order.stream) {
        return wait_for_end(marked(transfer.order, transfer.bytes), deadline.left());
    }
    return {.rest = std::nullopt, .ended = !transfer.to_gpu && waits};
}

}  // namespace

Waited wait_for_end(Started started, double seconds) {
    if (started.wait(seconds)) return {};
    return {.rest = std::move(started), .ended = false};
}

Waited wait_for_host(const CheckedTransfer& transfer, const CallerStream& stream, double seconds) {
    try {
        return move_and_wait(transfer, stream, seconds);
    } catch (const gpu::Error&) {
        drain(transfer.order);  // a part of it may be in the stream
        throw;
    }
}

std::optional<Started> mark(Engine& engine, const CallerStream& stream, std::size_t bytes) {
    engine.check_process();
    if (stream.none) return std::nullopt;
    const gpu::CallerState keep;
    const Ordering order = ordering(engine, stream, 0);
    if (!order.stream || order.capturing) return std::nullopt;
    return marked(order, bytes);
}

}  // namespace waywiser::transfer
