#include "measure/watchdog.hpp"

#include <chrono>

#include "host/clock.hpp"
#include "host/start_thread.hpp"

namespace waywiser::measure {
namespace {

// Checks per timeout: enough for accuracy, too few to disturb a measurement.
constexpr double kLooksPerLimit = 8;

}  // namespace

Watchdog::Watchdog(gpu::Gate& gate, double seconds)
    : gate_(gate), seconds_(seconds), thread_(host::start_thread([this] { watch(); })) {}

Watchdog::~Watchdog() {
    {
        const std::scoped_lock lock(guard_);
        ending_ = true;
    }
    changed_.notify_all();
}

void Watchdog::closing() {
    const std::scoped_lock lock(guard_);
    since_ = host::now();
    closed_ = true;
    bitten_ = false;
}

bool Watchdog::opened() {
    const std::scoped_lock lock(guard_);
    since_ = host::now();
    closed_ = false;
    return !bitten_;
}

void Watchdog::finished() {
    const std::scoped_lock lock(guard_);
    since_ = 0;
}

void Watchdog::watch() {
    std::unique_lock lock(guard_);
    while (!ending_) {
        changed_.wait_for(lock, std::chrono::duration<double>(seconds_ / kLooksPerLimit));
        if (since_ > 0 && host::now() - since_ > seconds_) {
            bitten_ = bitten_ || closed_;
            gate_.open();
        }
    }
}

}  // namespace waywiser::measure
