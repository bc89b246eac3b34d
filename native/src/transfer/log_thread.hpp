// Calls a function of the program for each line of text, in a thread that holds no lock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace waywiser::transfer {

// A function of the program, with what it is called with. Without one, `call` is null.
struct LogFunction {
    void (*call)(void* data, const char* line) = nullptr;
    void* data = nullptr;
};

// Thread safe. Its lock guards all of its members; it is not held while the function is called, and
// nothing else is locked with it held. The thread starts with the first line.
class LogThread {
public:
    // The thread runs on these CPUs, if there are any.
    LogThread(LogFunction function, std::vector<int> cpus);
    ~LogThread();  // ends it
    LogThread(const LogThread&) = delete;
    LogThread& operator=(const LogThread&) = delete;

    // Takes a line. False if there is no function, no thread could be started, or it has ended.
    bool add(const std::string& line);
    // Waits until the function has returned for all lines so far.
    void wait();
    // The same, and takes no line any more. The function is not called after this.
    void end();
    // Takes no line any more, drops those that wait, and does not wait for the function.
    void leave();

private:
    void run();

    const LogFunction function_;
    const std::vector<int> cpus_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::string> lines_;
    bool calling_ = false;  // the thread has taken a line, for which the function has not returned
    bool ended_ = false;
    std::thread thread_;
};

}  // namespace waywiser::transfer
