#include "stream_thread.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace waywiser::fake {
namespace {

// Threads that have not ended, for calls that wait for a whole device. Never destroyed.
struct Running {
    std::mutex mutex;
    std::vector<std::weak_ptr<StreamThread>> threads;
};

Running& running() {
    static Running& all = *new Running();
    return all;
}

std::atomic<std::size_t>& working() {
    static std::atomic<std::size_t>& count = *new std::atomic<std::size_t>(0);
    return count;
}

thread_local bool starts_a_stream = false;

}  // namespace

bool starts_stream() { return starts_a_stream; }

std::size_t busy_streams() { return working().load(); }

std::shared_ptr<StreamThread> StreamThread::start(int device, Kind kind) {
    const std::shared_ptr<StreamThread> stream(new StreamThread(device, kind));
    {
        const std::lock_guard lock(running().mutex);
        std::erase_if(running().threads, [](const auto& thread) { return thread.expired(); });
        running().threads.push_back(stream);
    }
    starts_a_stream = true;
    std::thread([stream] { stream->run(); }).detach();
    starts_a_stream = false;
    return stream;
}

// Two threads that enqueue at once never wait for each other's entries: each looks before it
// enqueues its own.
StreamThread::Entries StreamThread::earlier() const {
    Entries found;
    if (kind_ == Kind::non_blocking) return found;
    const Kind other = kind_ == Kind::legacy ? Kind::blocking : Kind::legacy;
    std::vector<std::shared_ptr<StreamThread>> others;
    {
        const std::lock_guard lock(running().mutex);
        for (const auto& thread : running().threads) {
            auto alive = thread.lock();
            if (alive && alive->device_ == device_ && alive->kind_ == other) {
                others.push_back(std::move(alive));
            }
        }
    }
    for (auto& thread : others) {
        const std::lock_guard lock(thread->mutex_);
        const std::uint64_t last = thread->enqueued_;
        if (thread->finished_ < last) found.emplace_back(thread, last);
    }
    return found;
}

std::uint64_t StreamThread::enqueue(std::function<void()> work) {
    std::uint64_t entry = 0;
    if (Entries before = earlier(); !before.empty() && !capturing()) {
        work = [before = std::move(before), own = std::move(work)] {
            for (const auto& [thread, last] : before) thread->wait(last);
            own();
        };
    }
    {
        std::unique_lock lock(mutex_);
        if (capturing_) {
            captured_.push_back(std::move(work));
            return enqueued_;
        }
        changed_.wait(lock, [&] { return enqueued_ - finished_ < kQueueEntries; });
        queue_.push_back(std::move(work));
        entry = ++enqueued_;
    }
    changed_.notify_all();
    return entry;
}

void StreamThread::finish_entry(const std::function<void()>& last) {
    {
        const std::lock_guard lock(mutex_);
        ++finished_;
        entry_has_finished_ = true;
        last();
    }
    changed_.notify_all();
}

void StreamThread::wait(std::uint64_t entry) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_ >= entry; });
}

void StreamThread::wait_all() {
    std::uint64_t last = 0;
    {
        const std::lock_guard lock(mutex_);
        last = enqueued_;
    }
    wait(last);
}

bool StreamThread::done() const {
    const std::lock_guard lock(mutex_);
    return finished_ == enqueued_;
}

bool StreamThread::begin_capture() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(capturing_, true);
}

std::vector<std::function<void()>> StreamThread::end_capture() {
    const std::lock_guard lock(mutex_);
    capturing_ = false;
    return std::exchange(captured_, {});
}

bool StreamThread::capturing() const {
    const std::lock_guard lock(mutex_);
    return capturing_;
}

void StreamThread::close() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    changed_.notify_all();
}

void StreamThread::run() {
    prctl(PR_SET_NAME, "fake-stream");  // else that of the thread which made it
    prctl(PR_SET_TIMERSLACK, 1UL);      // sleeps end on time, for stable simulated bandwidths
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        {
            const std::function<void()> work = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            ++working();
            work();
            --working();
        }
        lock.lock();
        if (!std::exchange(entry_has_finished_, false)) ++finished_;
        changed_.notify_all();
    }
}

void wait_device(int device) {
    std::vector<std::shared_ptr<StreamThread>> threads;
    {
        const std::lock_guard lock(running().mutex);
        for (const auto& thread : running().threads) {
            if (auto alive = thread.lock()) threads.push_back(std::move(alive));
        }
    }
    for (const auto& thread : threads) {
        if (device < 0 || thread->device() == device) thread->wait_all();
    }
}

}  // namespace waywiser::fake
