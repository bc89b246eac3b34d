// The fake's implementation of the seam's opaque handles.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "gpu/gpu.hpp"
#include "simulated_time.hpp"
#include "stream_thread.hpp"

namespace waywiser::fake {

// One recording of an event. Waiters keep it, even if the event is recorded again.
class Mark {
public:
    void reach(Instant when) {
        {
            const std::lock_guard lock(mutex_);
            reached_ = true;
            when_ = when;
        }
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return reached_; });
    }
    // Whether it was reached, and when.
    [[nodiscard]] std::pair<bool, Instant> state() {
        const std::lock_guard lock(mutex_);
        return {reached_, when_};
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool reached_ = false;
    Instant when_;
};

struct StreamHandle {
    std::shared_ptr<StreamThread> thread;
    // For libraries that get the handle and know nothing else of the fake.
    void (*enqueue)(StreamHandle&, std::function<void()> work);
    std::size_t (*busy)();  // how many streams of the process work
};

struct EventHandle {
    const int device;
    const gpu::EventUse use;

    void set(std::shared_ptr<Mark> recorded) {
        const std::lock_guard lock(mutex);
        last = std::move(recorded);
    }
    // The last recording; null before the first.
    [[nodiscard]] std::shared_ptr<Mark> mark() {
        const std::lock_guard lock(mutex);
        return last;
    }

    std::mutex mutex;  // the runtime's calls may come from any thread
    std::shared_ptr<Mark> last;
};

// The handles 0, 1 and 2 are default streams, as in CUDA: the legacy stream of a device, twice, and
// the one of the calling thread, which is a blocking stream.
inline bool is_default_stream(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle) <= 2;
}
inline bool is_legacy_stream(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle) <= 1;
}
StreamThread& legacy_stream(int device);
StreamThread& per_thread_stream(int device);

inline StreamThread& thread_of(const gpu::Stream& stream) {
    if (is_legacy_stream(stream.handle())) return legacy_stream(stream.device());
    if (is_default_stream(stream.handle())) return per_thread_stream(stream.device());
    return *static_cast<StreamHandle*>(stream.handle())->thread;
}
inline EventHandle& handle_of(const gpu::Event& event) {
    return *static_cast<EventHandle*>(event.handle());
}

}  // namespace waywiser::fake
