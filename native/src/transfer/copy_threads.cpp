#include "transfer/copy_threads.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "gpu/gpu.hpp"
#include "host/affinity.hpp"

namespace waywiser::transfer {
namespace {

// Blocks signals, which are for the program's own threads, in threads that are started here.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all{};
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

CopyThreads::CopyThreads(const Machine& machine, std::size_t most,
                         std::function<void(int node)> work)
    : machine_(machine), most_(most), work_(std::move(work)) {}

void CopyThreads::run(std::size_t index) {
    pthread_setname_np(pthread_self(), "waywiser-copy");
    prctl(PR_SET_TIMERSLACK, 1UL);
    gpu::relax_capture();
    int own = -1;
    // The thread that starts it may be bound to a single CPU.
    if (!machine_.numa.empty()) {
        const NumaNode& node = machine_.numa[index % machine_.numa.size()];
        const bool bound = host::run_on(node.cpus);
        if (bound && machine_.numa.size() > 1) own = node.index;
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
            threads_.emplace_back([this, index] { run(index); });
            size_ = threads_.size();
        } catch (const std::system_error&) {
            if (threads_.empty()) throw;
            return;  // fewer threads can do the work
        }
    }
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
