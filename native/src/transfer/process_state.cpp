#include "transfer/process_state.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "host/write_signals.hpp"

namespace waywiser::transfer {
namespace {

// Never destroyed. Where several are locked, `stops` comes first, then `warnings`, then `kept`.
struct ProcessState {
    std::atomic<unsigned> forks{0};  // a different value than an owner's shows a child

    std::mutex stops_mutex;
    std::map<const StopAtExit*, std::function<void()>> stops;

    std::mutex warnings_mutex;
    std::set<std::string> warnings;  // that this process has written

    std::mutex kept_mutex;
    std::vector<const void*> kept;
};

ProcessState& state() {
    static ProcessState& only = *new ProcessState();
    return only;
}

// Holds the lock throughout, so that nothing is destroyed meanwhile.
void stop_all() {
    const std::lock_guard lock(state().stops_mutex);
    for (const auto& [known, stop] : state().stops) stop();
}

void lock_all() {
    state().stops_mutex.lock();
    state().warnings_mutex.lock();
    state().kept_mutex.lock();
}

void unlock_all() {
    state().kept_mutex.unlock();
    state().warnings_mutex.unlock();
    state().stops_mutex.unlock();
}

// The locks are free in a child, which may create its own engines.
unsigned this_process() {
    static const bool watched = [] {
        pthread_atfork(lock_all, unlock_all, [] {
            unlock_all();
            ++state().forks;
        });
        std::atexit(stop_all);
        return true;
    }();
    (void)watched;
    return state().forks;
}

}  // namespace

OwnerProcess::OwnerProcess() : number_(this_process()) {}

bool OwnerProcess::forked() const { return number_ != state().forks; }

void OwnerProcess::check() const {
    if (forked()) throw ForkedProcess();
}

StopAtExit::StopAtExit(std::function<void()> stop) {
    const std::lock_guard lock(state().stops_mutex);
    state().stops.emplace(this, std::move(stop));
}

StopAtExit::~StopAtExit() {
    const std::lock_guard lock(state().stops_mutex);
    state().stops.erase(this);
}

void keep_for_ever(const void* object) {
    const std::lock_guard lock(state().kept_mutex);
    state().kept.push_back(object);
}

void report_once(const std::string& warning) {
    const std::lock_guard lock(state().warnings_mutex);
    if (!state().warnings.insert(warning).second) return;
    const host::WriteSignalsHeld held;  // nothing may read it any more
    std::fprintf(stderr, "waywiser: warning: %s\n", warning.c_str());
}

}  // namespace waywiser::transfer
