#include "transfer/log_thread.hpp"

#include <pthread.h>

#include <utility>

#include "host/affinity.hpp"
#include "host/start_thread.hpp"
#include "transfer/signals_blocked.hpp"

namespace waywiser::transfer {

LogThread::LogThread(LogFunction function, std::vector<int> cpus)
    : function_(function), cpus_(std::move(cpus)) {}

LogThread::~LogThread() { end(); }

bool LogThread::add(const std::string& line) {
    if (function_.call == nullptr) return false;
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    if (!thread_.joinable()) {
        try {
            const SignalsBlocked blocked;
            thread_ = host::start_thread<std::thread>([this] { run(); });
        } catch (const host::NoThread&) {
            return false;
        }
    }
    lines_.push_back(line);
    changed_.notify_all();
    return true;
}

void LogThread::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || (lines_.empty() && !calling_); });
}

void LogThread::end() {
    wait();
    std::thread thread;
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        thread.swap(thread_);
    }
    changed_.notify_all();
    if (thread.joinable()) thread.join();
}

void LogThread::leave() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    lines_.clear();
    changed_.notify_all();
}

void LogThread::run() {
    pthread_setname_np(pthread_self(), "waywiser-log");
    host::run_on(cpus_);
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return ended_ || !lines_.empty(); });
        if (lines_.empty()) return;
        const std::string line = std::move(lines_.front());
        lines_.pop_front();
        calling_ = true;
        lock.unlock();
        function_.call(function_.data, line.c_str());
        lock.lock();
        calling_ = false;
        changed_.notify_all();
    }
}

}  // namespace waywiser::transfer
