#include "host/start_thread.hpp"

#include <string>

namespace waywiser::host {

NoThread::NoThread(const std::error_code& why)
    : NotSupported("a thread cannot be started: " + why.message() +
                   " (raise the limit of processes: docker --pids-limit, podPidsLimit, ulimit -u; "
                   "or that of the address space: ulimit -v)") {}

}  // namespace waywiser::host
