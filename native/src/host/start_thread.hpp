// Threads, which a system may not give.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "waywiser/words.hpp"

namespace waywiser::host {

// The system starts no thread: a limit of the user, of the container or of the address space is
// reached. Its message names them.
class NoThread : public NotSupported {
public:
    explicit NoThread(const std::error_code& why);
};

// Runs a function in a new thread. Throws NoThread.
template <class Thread = std::jthread, class Run>
Thread start_thread(Run&& run) {
    try {
        return Thread(std::forward<Run>(run));
    } catch (const std::system_error& error) {
        throw NoThread(error.code());
    }
}

}  // namespace waywiser::host
