// Opens a gate that stays closed for too long because work behind it blocks the thread that should
// open it. Opens it once more if the work does not end after that: a lost opening then only delays
// a sample.
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

    void closing();   // the gate is about to be closed
    bool opened();    // the owner opened the gate; false if the watchdog was first
    void finished();  // all work behind the gate is done

private:
    void watch();

    gpu::Gate& gate_;
    double seconds_;
    std::mutex guard_;
    std::condition_variable changed_;
    double since_ = 0;  // time of closing, or of opening while work continues; 0: nothing to watch
    bool closed_ = false;
    bool bitten_ = false;
    bool ending_ = false;
    std::jthread thread_;
};

}  // namespace waywiser::measure
