// What a run finds: the first failure is printed with the command that makes it again, and ends the
// process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "fuzz/settings.hpp"

namespace waywiser::fuzz {

// What a thread does at the moment: for the watchdog.
class Activity {
public:
    Activity();
    ~Activity();
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;

    // The text of what begins now; how it goes on is one of the calls of begins().
    void begins(const std::string& text);
    void ends();
    // Seconds since the last begin(); 0 if it has ended.
    [[nodiscard]] double seconds() const;
    [[nodiscard]] std::string text() const;

private:
    mutable std::mutex mutex_;
    std::string text_;
    std::atomic<std::int64_t> began_{0};
};

class Report {
public:
    // The round that is made now; `fake` is the configuration of the fake GPU.
    static void round(const Settings& settings, std::uint64_t seed, const std::string& about);
    // Prints all, and exits with status 1.
    [[noreturn]] static void fail(const std::string& what, const std::string& details);
    // Starts the thread that reports calls which do not return.
    static void watch(double seconds);
};

// How much longer than its limit a call may take: the machine may be busy.
double slack_seconds();
// After which time a call is taken for one that never returns.
double hang_seconds();

}  // namespace waywiser::fuzz
