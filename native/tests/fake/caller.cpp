// The caller's objects in the fake: pointers, streams, the current device of a thread.
#include <array>
#include <map>

#include "context.hpp"
#include "copy_work.hpp"
#include "gpu/gpu.hpp"
#include "handles.hpp"
#include "ranges.hpp"

namespace waywiser::fake {

StreamThread& legacy_stream(int device) {
    constexpr std::size_t kMostDevices = 64;
    // Never destroyed: work may be queued after main().
    static auto& streams = *new std::array<std::shared_ptr<StreamThread>, kMostDevices>();
    static std::mutex& guard = *new std::mutex();
    const std::lock_guard lock(guard);
    auto& stream = streams.at(static_cast<std::size_t>(device));
    if (!stream) stream = StreamThread::start(device, StreamThread::Kind::legacy);
    return *stream;
}

StreamThread& per_thread_stream(int device) {
    struct OfThread {
        std::map<int, std::shared_ptr<StreamThread>> streams;
        ~OfThread() {
            for (const auto& [gpu, stream] : streams) stream->close();
        }
    };
    thread_local OfThread own;
    auto& stream = own.streams[device];
    if (!stream) stream = StreamThread::start(device, StreamThread::Kind::blocking);
    return *stream;
}

}  // namespace waywiser::fake

namespace waywiser::gpu {

using fake::Context;

PointerInfo pointer_info(const void* data) {
    if (Context::instance().forked()) return {};
    Context::instance().count(fake::Point::call, "cuPointerGetAttributes");
    const auto known = fake::Ranges::instance().range(data);
    if (!known) return {};
    PointerInfo info{.device = known->side.device, .start = known->start, .bytes = known->bytes};
    switch (known->side.type) {
        case fake::MemoryType::pageable: return {};
        case fake::MemoryType::page_locked: info.kind = PointerKind::pinned; break;
        case fake::MemoryType::managed: info.kind = PointerKind::managed; break;
        case fake::MemoryType::device: info.kind = PointerKind::device; break;
    }
    return info;
}

StreamInfo stream_info(void* stream, int otherwise) {
    Context::instance().check("cuStreamGetCtx");
    Context::instance().count(fake::Point::call, "cuStreamGetCtx");
    if (fake::is_default_stream(stream)) {
        const int device = Context::current() >= 0 ? Context::current() : otherwise;
        return {.device = device, .capturing = fake::thread_of(Stream(device, stream)).capturing()};
    }
    auto& thread = *static_cast<fake::StreamHandle*>(stream)->thread;
    return {.device = thread.device(), .capturing = thread.capturing()};
}

std::vector<int> active_devices() {
    if (Context::instance().forked()) return {};
    const auto entered = Context::instance().entered();
    return {entered.begin(), entered.end()};
}

bool capturing(void* stream) noexcept {
    if (fake::is_default_stream(stream)) return false;
    return static_cast<fake::StreamHandle*>(stream)->thread->capturing();
}

bool is_blocking(void* stream) noexcept {
    return fake::is_default_stream(stream) ||
           static_cast<fake::StreamHandle*>(stream)->thread->kind() !=
               fake::StreamThread::Kind::non_blocking;
}

bool has_context() noexcept { return Context::current() >= 0 && !Context::instance().forked(); }

bool has_context_of(int device) noexcept { return has_context() && Context::current() == device; }

bool is_idle(void* stream) {
    const int own = fake::is_default_stream(stream)
                        ? Context::current()
                        : static_cast<fake::StreamHandle*>(stream)->thread->device();
    return Stream(own, stream).done();
}

bool try_copy_on(void* destination, const void* source, std::size_t bytes, void* stream) {
    const int own = fake::is_default_stream(stream)
                        ? Context::current()
                        : static_cast<fake::StreamHandle*>(stream)->thread->device();
    const int before = Context::current();
    try {
        copy_async(destination, source, bytes, Stream(own, stream));
    } catch (const Error& error) {
        Context::current() = before;
        if (error.kind() == Failure::other && error.code() == fake::kInvalidValue) return false;
        throw;
    }
    Context::current() = before;
    return true;
}

CallerState::CallerState() : capture_mode_(Context::current()), saved_(true) {}
CallerState::~CallerState() { Context::current() = capture_mode_; }
void relax_capture() {}

}  // namespace waywiser::gpu
