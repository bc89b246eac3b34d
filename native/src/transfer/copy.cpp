#include "transfer/copy.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "transfer/byte_text.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/ordering.hpp"
#include "transfer/profiler.hpp"
#include "transfer/side.hpp"

namespace waywiser::transfer {
namespace {

// A small copy polls its stream for so long before it waits for an event.
constexpr double kPollStreamSeconds = 500e-6;
constexpr Polling kSmallCopy{.spin = std::chrono::milliseconds(1),
                             .pause = std::chrono::nanoseconds(0),
                             .sleep = std::chrono::microseconds(10)};

// For a profiler.
std::string text_of_call(std::size_t bytes) { return "waywiser copy " + text_of_bytes(bytes); }

struct Sides {
    Side to, from;
};

Sides sides_of(void* to, const void* from, std::size_t bytes) {
    return {.to = side_of(to, bytes), .from = side_of(const_cast<void*>(from), bytes)};
}

// Whether the runtime copies so few bytes itself. Below the least size of another method the memory
// need not be known. A policy can lower that size for some memory only: then the memory decides,
// and `known` keeps what both sides are. One side on a GPU can be enough, since queries take time.
bool is_small(const Engine& engine, void* to, const void* from, std::size_t bytes,
              std::optional<Sides>& known) {
    if (bytes < engine.plain_below()) return true;
    if (bytes >= kPlainBelow) return false;
    const bool plain_with_gpu = bytes < engine.plain_below_with_gpu();
    const Side into = side_of(to, bytes);
    if (plain_with_gpu && into.end.gpu >= 0) return true;
    const Side out = side_of(const_cast<void*>(from), bytes);
    if (plain_with_gpu && out.end.gpu >= 0) return true;
    known = Sides{.to = into, .from = out};
    const bool between_gpus = into.end.gpu >= 0 && out.end.gpu >= 0 && into.end.gpu != out.end.gpu;
    return into.uniform && out.uniform && !between_gpus &&
           choose(engine, into, out, bytes).method == Choice::Method::plain;
}

bool is_idle(const CallerStream& stream) {
    const gpu::CallerState keep;  // another thread may be capturing
    return gpu::is_idle(stream.handle);
}

bool try_plainly(Engine& engine, void* to, const void* from, std::size_t bytes,
                 const CallerStream& stream) {
    const ProfilerRange profiled([&] { return text_of_call(bytes) + " plain"; });
    return engine.statistics().count_call(WAYWISER_METHOD_PLAIN, bytes, [&] {
        return gpu::try_copy_on(to, from, bytes, stream.handle);
    });
}

// A fast path for small copies, without queries that cannot change the method. Returns false,
// without copying, if it does not apply. With a deadline it only applies on an idle stream: the
// runtime makes a caller with pageable memory wait for the stream.
bool copy_small(Engine& engine, void* to, const void* from, std::size_t bytes,
                const CallerStream& stream, const Deadline& deadline, std::optional<Sides>& known) {
    const std::size_t polite = engine.options().max_queued_bytes;
    return bytes < kPlainBelow && (polite == 0 || bytes <= polite) && !stream.none &&
           (stream.gpu < 0 ? gpu::has_context() : gpu::has_context_of(stream.gpu)) &&
           !gpu::capturing(stream.handle) && to != nullptr && from != nullptr &&
           !overlap(to, from, bytes) && is_small(engine, to, from, bytes, known) &&
           (!deadline.is_limited() || is_idle(stream)) &&
           try_plainly(engine, to, from, bytes, stream);
}

struct Prepared {
    Side to, from;
    Ordering order;
    Choice choice;
};

// `known`: both sides, if they were queried already.
Prepared prepare(Engine& engine, void* to, const void* from, std::size_t bytes,
                 const CallerStream& stream, const std::optional<Sides>& known = std::nullopt) {
    check_copy(to, from, bytes);
    const Sides sides = known ? *known : sides_of(to, from, bytes);
    Prepared ready;
    ready.to = sides.to;
    ready.from = sides.from;
    ready.order = ordering(engine, stream, operand_gpu(ready.to, ready.from));
    const int to_gpu = ready.to.end.gpu;
    const int from_gpu = ready.from.end.gpu;
    if (to_gpu >= 0 && from_gpu >= 0 && to_gpu != from_gpu) engine.enable_peers(to_gpu, from_gpu);
    if (ready.order.capturing && (!gpu_reaches(ready.to) || !gpu_reaches(ready.from))) {
        reject_capture();
    }
    ready.choice = choose(engine, ready.to, ready.from, bytes, ready.order.capturing);
    return ready;
}

// For a profiler: "waywiser copy 64 MiB H2D chunked".
std::string text_of_call(const Prepared& ready, std::size_t bytes) {
    const auto letter = [](const Side& side) { return side.end.gpu >= 0 ? "D" : "H"; };
    return text_of_call(bytes) + ' ' + letter(ready.from) + '2' + letter(ready.to) +
           (ready.choice.method == Choice::Method::plain ? " plain" : " chunked");
}

std::shared_ptr<Job> job_of(Engine& engine, const Prepared& ready, std::size_t bytes) {
    return std::make_shared<ChunkedCopy>(engine, ready.to.end, ready.from.end, bytes,
                                         ready.choice.shape);
}

// The stream in which a copy was ordered: the copy may have made another GPU current, whose default
// stream is another one.
CallerStream stream_of(const CallerStream& stream, const Ordering& order) {
    CallerStream used = stream;
    if (order.stream && stream.is_default()) used.gpu = order.stream->device();
    return used;
}

// With the calling thread. Returns what is left of it at the deadline.
std::optional<Completion> run(Engine& engine, const Prepared& ready, std::size_t bytes,
                              const Ordering& order, const Deadline& deadline = {}) {
    if (ready.choice.method == Choice::Method::plain) {
        plain_copy(engine, ready.to, ready.from, bytes, order);
        return std::nullopt;
    }
    std::shared_ptr<gpu::Event> event = event_unless_idle(order);
    const auto job = job_of(engine, ready, bytes);
    if (run_after(engine, job, order, std::move(event), deadline)) return std::nullopt;
    return Completion(engine.shared_from_this(), job);
}

// By the runtime, with an event after it.
Completion start_plain(Engine& engine, const Prepared& ready, std::size_t bytes) {
    if (!ready.order.stream) {
        plain_copy(engine, ready.to, ready.from, bytes, ready.order);
        return Completion(bytes);
    }
    std::shared_ptr<gpu::Event> event = ready.order.events->take(ready.order.stream->device());
    plain_copy(engine, ready.to, ready.from, bytes, ready.order);
    try {
        event->record(*ready.order.stream);
    } catch (const gpu::Error&) {
        rethrow_when_settled(ready.order);
    }
    return {bytes, std::move(event)};
}

Completion start(const std::shared_ptr<Engine>& engine, const Prepared& ready, std::size_t bytes) {
    const bool managed = ready.to.managed || ready.from.managed;
    // The runtime's copies between host memories always block the caller.
    const bool on_host = ready.to.end.gpu < 0 && ready.from.end.gpu < 0;
    const bool blocks =
        !ready.order.stream || on_host || !gpu_reaches(ready.to) || !gpu_reaches(ready.from);
    if (ready.choice.method == Choice::Method::plain &&
        (!blocks || engine->options().plain || managed)) {
        return start_plain(*engine, ready, bytes);
    }
    // A plain copy of pageable memory would block the caller: a thread does it instead.
    const bool spins = engine->options().spin_seconds > 0;
    std::shared_ptr<gpu::Event> event = spins ? event_unless_idle(ready.order) : after(ready.order);
    auto job = job_of(*engine, ready, bytes);
    engine->start(job, std::move(event));
    return {engine, std::move(job)};
}

HostUse host_use(const Prepared& ready) {
    if (ready.to.managed || ready.from.managed) return {.gpus = true};
    const bool to_gpu = ready.to.end.gpu >= 0;
    if (to_gpu && ready.from.end.gpu >= 0) return {};
    if (!to_gpu && ready.from.end.gpu < 0) return {.cpus = true};
    const Side& host = to_gpu ? ready.from : ready.to;
    const bool in_parts = ready.choice.method == Choice::Method::plain && !host.uniform;
    const bool cpus = !host.end.pinned && !in_parts;  // some of the parts may be pinned
    return {.cpus = cpus, .gpus = !cpus};
}

WaitResult make_and_wait(const std::shared_ptr<Engine>& engine, const Prepared& ready,
                         std::size_t bytes, const Deadline& deadline) {
    // Threads that spin see the end of a copy soon enough for its caller to wait for it.
    const bool over_link = (ready.to.end.gpu < 0) != (ready.from.end.gpu < 0);
    const bool to_end = engine->options().spin_seconds > 0 && over_link &&
                        ready.choice.method == Choice::Method::chunked;
    if (to_end && !ready.order.capturing && !event_unless_idle(ready.order)) {
        const auto job = job_of(*engine, ready, bytes);
        if (engine->run(job, Engine::Until::done, nullptr, deadline)) return {};
        return {.left = Completion(engine, job), .ended = false};
    }
    const HostUse host = host_use(ready);
    const bool to_gpu = ready.to.end.gpu >= 0;
    // When the stream has been waited for, CPUs need none.
    const bool on_host = !to_gpu && ready.from.end.gpu < 0 && host.cpus;
    const Ordering no_stream;
    const Ordering& order = on_host && !ready.order.capturing ? no_stream : ready.order;
    return wait_for_host(
        {.bytes = bytes,
         .order = ready.order,
         .host = host,
         .to_gpu = to_gpu,
         .run = [&](const Deadline& end) { return run(*engine, ready, bytes, order, end); },
         .start = [&] { return start(engine, ready, bytes); }},
        deadline);
}

// Finding out what the memory is would take longer than to wait for the whole copy.
WaitResult copy_small_and_wait(const std::shared_ptr<Engine>& engine, void* to, const void* from,
                               std::size_t bytes, const CallerStream& stream,
                               const Deadline& deadline) {
    std::optional<Sides> known;
    const bool is_fast = copy_small(*engine, to, from, bytes, stream, deadline, known);
    const gpu::CallerState keep;
    CallerStream used = stream;
    if (!is_fast) {
        const Prepared ready = prepare(*engine, to, from, bytes, stream, known);
        const ProfilerRange profiled([&] { return text_of_call(ready, bytes); });
        used = stream_of(stream, ready.order);
        if (ready.choice.method == Choice::Method::chunked || deadline.is_limited()) {
            WaitResult waited = make_and_wait(engine, ready, bytes, deadline);
            // Also on the GPU, as the others.
            const bool is_left = !waited.left && !waited.ended && !ready.order.capturing;
            if (!is_left) return waited;
            try {
                auto marked = mark(*engine, used, bytes);
                return marked ? wait_for_end(std::move(*marked), deadline) : std::move(waited);
            } catch (const gpu::Error&) {
                rethrow_when_settled(ready.order);
            }
        }
        plain_copy(*engine, ready.to, ready.from, bytes, ready.order);
        if (ready.order.capturing) return {.left = std::nullopt, .ended = false};  // only recorded
    }
    try {
        const auto is_idle = [&] { return gpu::is_idle(stream.handle); };
        if (is_fast && poll(is_idle, Deadline(kPollStreamSeconds), kSmallCopy)) return {};
        auto marked = mark(*engine, used, bytes);
        return marked ? wait_for_end(std::move(*marked), deadline) : WaitResult{};
    } catch (const gpu::Error&) {
        rethrow_when_settled(*engine, used);
    }
}

}  // namespace

std::optional<Completion> run_copy(Engine& engine, void* to, const void* from, std::size_t bytes,
                                   const CallerStream& stream, const Deadline& deadline) {
    const Prepared ready = prepare(engine, to, from, bytes, stream);
    return run(engine, ready, bytes, ready.order, deadline);
}

Completion start_copy(Engine& engine, void* to, const void* from, std::size_t bytes,
                      const CallerStream& stream) {
    return start(engine.shared_from_this(), prepare(engine, to, from, bytes, stream), bytes);
}

void copy(Engine& engine, void* to, const void* from, std::size_t bytes,
          const CallerStream& stream) {
    engine.check_process();
    std::optional<Sides> known;
    if (bytes == 0 || copy_small(engine, to, from, bytes, stream, {}, known)) return;
    const gpu::CallerState keep;
    const Prepared ready = prepare(engine, to, from, bytes, stream, known);
    const ProfilerRange profiled([&] { return text_of_call(ready, bytes); });
    run(engine, ready, bytes, ready.order);
}

WaitResult copy_and_wait(const std::shared_ptr<Engine>& engine, void* to, const void* from,
                         std::size_t bytes, const CallerStream& stream, const Deadline& deadline) {
    engine->check_process();
    if (bytes == 0) return {};
    if (bytes < kPlainBelow) {
        return copy_small_and_wait(engine, to, from, bytes, stream, deadline);
    }
    const gpu::CallerState keep;
    const Prepared ready = prepare(*engine, to, from, bytes, stream);
    const ProfilerRange profiled([&] { return text_of_call(ready, bytes); });
    return make_and_wait(engine, ready, bytes, deadline);
}

Completion copy_async(const std::shared_ptr<Engine>& engine, void* to, const void* from,
                      std::size_t bytes, const CallerStream& stream) {
    engine->check_process();
    if (bytes == 0) return Completion(0);
    const gpu::CallerState keep;
    const Prepared ready = prepare(*engine, to, from, bytes, stream);
    const ProfilerRange profiled([&] { return text_of_call(ready, bytes); });
    if (ready.order.capturing) {
        throw NotSupported("the stream is being captured: record the copy with copy()");
    }
    return start(engine, ready, bytes);
}

}  // namespace waywiser::transfer
