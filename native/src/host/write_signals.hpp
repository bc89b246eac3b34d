// Signals that the kernel sends to a thread whose write fails.
#pragma once

#include <csignal>

namespace waywiser::host {

// Until the end of the scope, a write of the calling thread to a pipe or socket without a reader,
// or beyond the limit of file sizes (ulimit -f), only fails: with EPIPE or EFBIG. Without this the
// signal that comes with it ends a program that does not handle it. Keeps errno.
class WriteSignalsHeld {
public:
    WriteSignalsHeld();
    ~WriteSignalsHeld();
    WriteSignalsHeld(const WriteSignalsHeld&) = delete;
    WriteSignalsHeld& operator=(const WriteSignalsHeld&) = delete;

private:
    sigset_t before_{};   // the mask of the thread
    sigset_t pending_{};  // signals that others have sent before
};

}  // namespace waywiser::host
