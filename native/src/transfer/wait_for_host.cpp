#include "transfer/wait_for_host.hpp"

#include <utility>

namespace waywiser::transfer {
namespace {

// Waits until the stream has completed its work; false if it has not in time.
bool reaches(const Ordering& order, const Deadline& deadline) {
    std::shared_ptr<gpu::Event> event = after(order);
    return !event || Completion(0, std::move(event)).wait(deadline);
}

WaitResult move_and_wait(const CheckedTransfer& transfer, const Deadline& deadline) {
    const bool waits = !transfer.order.capturing;
    if (waits && transfer.host.gpus && !transfer.host.cpus) {
        return wait_for_end(transfer.start(), deadline);
    }
    if (waits && transfer.host.cpus && !reaches(transfer.order, deadline)) {
        return {.left = transfer.start(), .ended = false};
    }
    std::optional<Completion> rest = transfer.run(waits ? deadline : Deadline());
    if (rest) return {.left = std::move(rest), .ended = false};
    if (waits && transfer.host.gpus && transfer.order.stream) {
        return wait_for_end({transfer.bytes, recorded(transfer.order)}, deadline);
    }
    return {.left = std::nullopt, .ended = !transfer.to_gpu && waits};
}

}  // namespace

WaitResult wait_for_end(Completion started, const Deadline& deadline) {
    if (started.wait(deadline)) return {};
    return {.left = std::move(started), .ended = false};
}

WaitResult wait_for_host(const CheckedTransfer& transfer, const Deadline& deadline) {
    try {
        return move_and_wait(transfer, deadline);
    } catch (const gpu::Error&) {
        rethrow_when_settled(transfer.order);  // a part of it may be in the stream
    }
}

std::optional<Completion> mark(Engine& engine, const CallerStream& stream, std::size_t bytes) {
    engine.check_process();
    if (stream.none) return std::nullopt;
    const gpu::CallerState keep;
    const Ordering order = ordering(engine, stream, 0);
    if (!order.stream || order.capturing) return std::nullopt;
    return Completion(bytes, recorded(order));
}

}  // namespace waywiser::transfer
