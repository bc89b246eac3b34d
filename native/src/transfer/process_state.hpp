// What the library keeps once per process: how often it was forked, what exit() has to stop, and
// the warnings that were written. All of it is thread safe, and its locks are free in a child.
#pragma once

#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>

namespace waywiser::transfer {

// A child process uses an object of its parent.
class ForkedProcess : public std::runtime_error {
public:
    ForkedProcess()
        : std::runtime_error(
              "this process was forked from the one that made the transfer context: make a context "
              "of its own here (with CUDA, start processes by spawn instead of fork)") {}
};

// The process that made an object. A child has the object, but none of its threads.
class OwnerProcess {
public:
    OwnerProcess();
    // Whether this process is a child of the owner. Takes no lock.
    [[nodiscard]] bool forked() const;
    // Throws ForkedProcess in a child.
    void check() const;

private:
    const unsigned number_;
};

// Calls `stop` in exit(), while the driver still works, if this still exists. exit() holds the lock
// meanwhile, so that the destructor waits until `stop` has returned. A child calls it too: it must
// do nothing there.
class StopAtExit {
public:
    explicit StopAtExit(std::function<void()> stop);
    ~StopAtExit();
    StopAtExit(const StopAtExit&) = delete;
    StopAtExit& operator=(const StopAtExit&) = delete;
};

// Locks what is kept once per process: the tables of memory that programs have pinned or
// registered, and what the functions below keep. Nothing else is locked, and nothing waits, with it
// held.
[[nodiscard]] std::unique_lock<std::mutex> lock_process_tables();

// Keeps something until the process ends, without destroying it.
void keep_for_ever(const void* object);

// Writes a warning to stderr, unless this process has written it before.
void report_once(const std::string& warning);

}  // namespace waywiser::transfer
