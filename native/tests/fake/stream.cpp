// Streams and events of the fake.
#include "context.hpp"
#include "gpu/gpu.hpp"
#include "handles.hpp"

namespace waywiser::gpu {
namespace {

using fake::Context;
using fake::Point;

constexpr int kInvalidHandle = 400;
constexpr int kNotReady = 600;

// The resolution of events: differences below one tick cannot be seen, as on H200.
constexpr auto kTick = std::chrono::nanoseconds(32);

fake::Instant tick(fake::Instant when) { return when - when.time_since_epoch() % kTick; }

void enqueue(fake::StreamHandle& stream, std::function<void()> work) {
    stream.thread->enqueue(std::move(work));
}

void* new_stream(int device, fake::StreamThread::Kind kind) {
    void* const made = new fake::StreamHandle{fake::StreamThread::start(device, kind), enqueue,
                                              fake::busy_streams};
    ++fake::living().streams;
    return made;
}

void before_waiting(const char* call) {
    Context& context = Context::instance();
    context.hang(context.pass(Point::sync, call));
}

void reject_capturing(const Stream& stream, const char* call) {
    constexpr int kCaptureUnsupported = 900;
    if (!fake::thread_of(stream).capturing()) return;
    throw Error(Failure::other, call, kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported");
}

}  // namespace

void detail::StreamDeleter::operator()(void* handle) const noexcept {
    if (!owned) return;
    auto* stream = static_cast<fake::StreamHandle*>(handle);
    stream->thread->close();
    delete stream;
    --fake::living().streams;
}

void detail::EventDeleter::operator()(void* handle) const noexcept {
    delete static_cast<fake::EventHandle*>(handle);
    --fake::living().events;
}

Stream::Stream(int device, StreamUse use) : device_(device) {
    using Kind = fake::StreamThread::Kind;
    Context::instance().enter(use == StreamUse::prioritized ? "cudaStreamCreateWithPriority"
                                                            : "cudaStreamCreateWithFlags",
                              device);
    handle_.reset(
        new_stream(device, use == StreamUse::blocking ? Kind::blocking : Kind::non_blocking));
}

void Stream::synchronize() const {
    reject_capturing(*this, "cudaStreamSynchronize");
    before_waiting("cudaStreamSynchronize");
    fake::thread_of(*this).wait_all();
    Context::instance().check("cudaStreamSynchronize");
}

bool Stream::done() const {
    reject_capturing(*this, "cudaStreamQuery");
    Context::instance().check("cudaStreamQuery");
    Context::instance().count(Point::query, "cudaStreamQuery");
    const bool done = fake::thread_of(*this).done();
    Context::instance().check("cudaStreamQuery");
    return done;
}

Event::Event(int device, EventUse use) {
    Context::instance().enter("cudaEventCreateWithFlags", device);
    handle_.reset(new fake::EventHandle{device, use, {}, nullptr});
    ++fake::living().events;
}

void Event::record(const Stream& stream) {
    auto& event = fake::handle_of(*this);
    if (event.device != stream.device()) {
        throw Error(Failure::other, "cudaEventRecord", kInvalidHandle,
                    "cudaErrorInvalidResourceHandle");
    }
    const fake::Effects effects = Context::instance().pass(Point::event, "cudaEventRecord");
    auto mark = std::make_shared<fake::Mark>();
    event.set(mark);
    fake::StreamThread& thread = fake::thread_of(stream);
    const bool in_graph = thread.capturing();
    thread.enqueue([mark, effects, in_graph, &thread] {
        Context& context = Context::instance();
        context.hang(effects);
        if (effects.lost) context.lose();
        if (!context.lost()) {
            fake::wait_until(fake::later(fake::now(), context.options()->event_seconds));
        }
        const auto reach = [&] { mark->reach(tick(fake::now())); };
        if (in_graph) {
            reach();
        } else {
            thread.finish_entry(reach);
        }
    });
}

void Event::synchronize() const {
    before_waiting("cudaEventSynchronize");
    if (const auto mark = fake::handle_of(*this).mark()) mark->wait();
    Context::instance().check("cudaEventSynchronize");
}

bool Event::done() const {
    Context::instance().check("cudaEventQuery");
    Context::instance().count(Point::query, "cudaEventQuery");
    const auto mark = fake::handle_of(*this).mark();
    const bool reached = mark == nullptr || mark->state().first;
    Context::instance().check("cudaEventQuery");
    return reached;
}

void wait(const Stream& stream, const Event& event) {
    Context::instance().check("cudaStreamWaitEvent");
    Context::instance().count(Point::call, "cudaStreamWaitEvent");
    const auto mark = fake::handle_of(event).mark();
    if (mark == nullptr) return;  // never recorded: nothing to wait for, as in CUDA
    fake::thread_of(stream).enqueue([mark] { mark->wait(); });
}

double seconds_between(const Event& start, const Event& stop) {
    constexpr const char* kCall = "cudaEventElapsedTime";
    Context::instance().check(kCall);
    Context::instance().count(Point::call, kCall);
    auto& from = fake::handle_of(start);
    auto& to = fake::handle_of(stop);
    const auto first = from.mark();
    const auto last = to.mark();
    const bool timed = from.use == EventUse::timing && to.use == EventUse::timing;
    if (!timed || from.device != to.device || !first || !last) {
        throw Error(Failure::other, kCall, kInvalidHandle, "cudaErrorInvalidResourceHandle");
    }
    const auto [started, began] = first->state();
    const auto [stopped, ended] = last->state();
    if (!started || !stopped) throw Error(Failure::other, kCall, kNotReady, "cudaErrorNotReady");
    return std::chrono::duration<double>(ended - began).count();
}

}  // namespace waywiser::gpu
