#include "transfer/copy_threads.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "gpu/gpu.hpp"
#include "host/affinity.hpp"
#include "host/start_thread.hpp"
#include "transfer/signals_blocked.hpp"

namespace waywiser::transfer {
CopyThreads::CopyThreads(const Machine& machine, std::vector<int> cpus, std::size_t most,
                         std::function<void(int node)> work)
    : cpus_(std::move(cpus)), most_(most), work_(std::move(work)) {
    std::ranges::copy_if(machine.numa, std::back_inserter(nodes_),
                         [](const NumaNode& node) { return !node.cpus.empty(); });
}

void CopyThreads::run(std::size_t index) {
    pthread_setname_np(pthread_self(), "waywiser-copy");
    prctl(PR_SET_TIMERSLACK, 1UL);
    gpu::relax_capture();
    int own = -1;
    // The thread that starts it may be bound to a single CPU.
    if (!nodes_.empty()) {
        const NumaNode& node = nodes_[index % nodes_.size()];
        const bool bound = host::run_on(node.cpus);
        if (bound && nodes_.size() > 1) own = node.index;
    } else {
        host::run_on(cpus_);
    }
    work_(own);
    const std::lock_guard lock(mutex_);
    ++returned_;
    ended_.notify_all();
}

void CopyThreads::spawn(std::size_t count) {
    count = std::min(count, most_);
    if (size_ >= count) return;
    const std::lock_guard lock(mutex_);
    while (threads_.size() < count && !joined_) {
        try {
            const SignalsBlocked blocked;
            const std::size_t index = threads_.size();
            threads_.push_back(host::start_thread<std::thread>([this, index] { run(index); }));
            size_ = threads_.size();
        } catch (const host::NoThread& error) {
            why_not_ = error.what();
            return;  // fewer threads can do the work, or the calling one
        }
    }
}

std::string CopyThreads::why_not() {
    const std::lock_guard lock(mutex_);
    return joined_ ? std::string() : why_not_;
}

bool CopyThreads::join(const std::function<bool()>& goes_on) {
    std::vector<std::thread> threads;
    {
        std::unique_lock lock(mutex_);
        joined_ = true;
        size_ = 0;
        const auto all = [this] { return returned_ == threads_.size(); };
        while (!ended_.wait_for(lock, kJoinStep, all)) {
            lock.unlock();
            if (!goes_on()) return false;
            lock.lock();
        }
        threads.swap(threads_);
        returned_ = 0;
    }
    for (std::thread& thread : threads) thread.join();
    return true;
}

void CopyThreads::detach() {
    const std::lock_guard lock(mutex_);
    for (std::thread& thread : threads_) thread.detach();
    threads_.clear();
}

}  // namespace waywiser::transfer
