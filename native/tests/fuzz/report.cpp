#include "fuzz/report.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "support/sanitizer.hpp"

namespace waywiser::fuzz {
namespace {

struct Shared {
    std::mutex mutex;
    std::set<const Activity*> activities;
    std::string command, about;
};

// Never destroyed: the watchdog uses it to the end of the process.
Shared& shared() {
    static Shared& all = *new Shared();
    return all;
}

std::int64_t nanoseconds() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

[[noreturn]] void print_and_exit(const std::string& what, const std::string& details) {
    std::printf("\nFAILED: %s\n%s\nround: %s\nagain: %s\n", what.c_str(), details.c_str(),
                shared().about.c_str(), shared().command.c_str());
    std::fflush(stdout);
    _exit(1);
}

}  // namespace

Activity::Activity() {
    const std::lock_guard lock(shared().mutex);
    shared().activities.insert(this);
}

Activity::~Activity() {
    const std::lock_guard lock(shared().mutex);
    shared().activities.erase(this);
}

void Activity::begins(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
    began_ = nanoseconds();
}

void Activity::ends() { began_ = 0; }

double Activity::seconds() const {
    const std::int64_t began = began_;
    return began == 0 ? 0 : static_cast<double>(nanoseconds() - began) * 1e-9;
}

std::string Activity::text() const {
    const std::lock_guard lock(mutex_);
    return text_;
}

void Report::round(const Settings& settings, std::uint64_t seed, const std::string& about) {
    const std::lock_guard lock(shared().mutex);
    shared().command = settings.command(seed);
    shared().about = "seed " + std::to_string(seed) + ", " + about;
}

void Report::fail(const std::string& what, const std::string& details) {
    const std::lock_guard lock(shared().mutex);
    print_and_exit(what, details);
}

void Report::watch(double seconds) {
    std::thread([seconds] {
        for (;;) {
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            const std::lock_guard lock(shared().mutex);
            std::string all;
            bool hangs = false;
            for (const Activity* activity : shared().activities) {
                const double taken = activity->seconds();
                hangs = hangs || taken > seconds;
                if (taken > 1) {
                    all += "  for " + std::to_string(taken) + " s: " + activity->text() + "\n";
                }
            }
            if (hangs) print_and_exit("a call does not return", all);
        }
    }).detach();
}

double slack_seconds() { return test::sanitizer() == test::Sanitizer::none ? 10 : 40; }
double hang_seconds() { return test::sanitizer() == test::Sanitizer::none ? 60 : 240; }

}  // namespace waywiser::fuzz
