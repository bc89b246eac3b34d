// What a user should know about an engine that works, but less well than it could.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transfer/log_thread.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the texts; nothing else is locked with it held.
class Warnings {
public:
    // Each warning is a line for the function of the program, which runs on these CPUs if there are
    // any. `report`: what it does not get is written to stderr, once per process.
    explicit Warnings(bool report, LogFunction log = {}, std::vector<int> cpus = {})
        : report_(report), log_(log, std::move(cpus)) {}

    // Adds a warning, unless it is known or there are too many.
    void add(const std::string& message);
    // All so far, without duplicates, in the order of their occurrence.
    [[nodiscard]] std::vector<std::string> all() const;
    // The number of their characters, with one more for each. Takes no lock.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    // The function of the program gets the warnings in a thread of its own.
    [[nodiscard]] LogThread& log() { return log_; }

private:
    const bool report_;
    LogThread log_;
    mutable std::mutex mutex_;
    std::vector<std::string> texts_;
    std::atomic<std::size_t> bytes_{0};
};

}  // namespace waywiser::transfer
