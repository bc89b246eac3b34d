// Opens a gate that stays closed for too long: something behind it blocks the thread that should
// have opened it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "gpu/gpu.hpp"

namespace waywiser::measure {

class Watchdog {
public:
    Watchdog(gpu::Gate& gate, double seconds);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    void closing();  // the gate is about to be closed
    bool opened();   // the gate was opened by its owner; false if the watchdog was first

private:
    void watch();

    gpu::Gate& gate_;
    double seconds_;
    std::mutex guard_;
    std::condition_variable changed_;
    double closed_since_ = 0;  // 0: open
    bool bitten_ = false;
    bool ending_ = false;
    std::jthread thread_;
};

}  // namespace waywiser::measure
