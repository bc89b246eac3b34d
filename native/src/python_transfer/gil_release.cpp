#include "gil_release.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace waywiser::python {
namespace {

// How long to wait for threads that may be late to get the GIL because another one keeps it.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kNap = std::chrono::microseconds(100);

std::atomic<bool> ends{false};
std::atomic<std::thread::id> ending_thread{};
std::atomic<unsigned> returns{0};     // times that a thread was about to take the GIL
std::atomic<unsigned> have_taken{0};  // those at which it has taken it; changes with the GIL

}  // namespace

GilRelease::~GilRelease() {
    ++returns;
    if (ends && ending_thread.load() != std::this_thread::get_id()) {
        --returns;
        for (;;) pause();
    }
    PyEval_RestoreThread(state_);
    have_taken.store(have_taken.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void begin_exit() {
    ending_thread = std::this_thread::get_id();
    ends = true;
    PyThreadState* const state = PyEval_SaveThread();
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (returns != have_taken && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(kNap);
    }
    PyEval_RestoreThread(state);
}

}  // namespace waywiser::python
