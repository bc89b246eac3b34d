#include "host/write_signals.hpp"

#include <pthread.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace waywiser::host {
namespace {

constexpr std::array<int, 2> kSignals = {SIGPIPE, SIGXFSZ};

}  // namespace

WriteSignalsHeld::WriteSignalsHeld() {
    sigset_t held{};
    sigemptyset(&held);
    for (const int signal : kSignals) sigaddset(&held, signal);
    sigemptyset(&pending_);
    sigpending(&pending_);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
}

// Takes the signals of the thread's own writes. The kernel sends them to the thread, so that no
// other thread could take them.
WriteSignalsHeld::~WriteSignalsHeld() {
    const int error = errno;
    sigset_t now{};
    sigemptyset(&now);
    sigpending(&now);
    for (const int signal : kSignals) {
        if (sigismember(&now, signal) == 0 || sigismember(&pending_, signal) != 0) continue;
        sigset_t one{};
        sigemptyset(&one);
        sigaddset(&one, signal);
        constexpr timespec kAtOnce{};
        while (sigtimedwait(&one, nullptr, &kAtOnce) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
}

}  // namespace waywiser::host
