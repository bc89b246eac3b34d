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

// Never destroyed. Where both are locked, `stops_mutex` comes first.
struct ProcessState {
    std::atomic<unsigned> forks{0};  // a different value than an owner's shows a child

    std::mutex stops_mutex;
    std::map<const StopAtExit*, std::function<void()>> stops;

    std::mutex tables_mutex;         // see lock_process_tables()
    std::set<std::string> warnings;  // that this process has written
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
    state().tables_mutex.lock();
}

void unlock_all() {
    state().tables_mutex.unlock();
    state().stops_mutex.unlock();
}

// The locks are free in a child, which may create its own engines.
unsigned this_process() {
    static const bool watched = [] {
        pthread_atfork(lock_all, unlock_all, [] {
            unlock_all();
            ++state().forks;
        });
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
    static const bool stops = std::atexit(stop_all) == 0;
    (void)stops;
    const std::lock_guard lock(state().stops_mutex);
    state().stops.emplace(this, std::move(stop));
}

StopAtExit::~StopAtExit() {
    const std::lock_guard lock(state().stops_mutex);
    state().stops.erase(this);
}

std::unique_lock<std::mutex> lock_process_tables() {
    this_process();
    return std::unique_lock(state().tables_mutex);
}

void keep_for_ever(const void* object) {
    const auto lock = lock_process_tables();
    state().kept.push_back(object);
}

void report_once(const std::string& warning) {
    {
        const auto lock = lock_process_tables();
        if (!state().warnings.insert(warning).second) return;
    }
    const host::WriteSignalsHeld held;  // nothing may read it any more
    std::fprintf(stderr, "waywiser: warning: %s\n", warning.c_str());
}

}  // namespace waywiser::transfer
