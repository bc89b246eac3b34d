// Opens a gate that stays closed for too long: something behind it blocks the thread that should
// have opened it. Opens it once more where work does not end after it was opened: an opening that
// was lost delays a sample, and does not lose it.
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
    bool opened();    // the gate was opened by its owner; false if the watchdog was first
    void finished();  // all that waited behind the gate is done

private:
    void watch();

    gpu::Gate& gate_;
    double seconds_;
    std::mutex guard_;
    std::condition_variable changed_;
    double since_ = 0;  // of closing, or of opening while work goes on; 0: nothing to watch
    bool closed_ = false;
    bool bitten_ = false;
    bool ending_ = false;
    std::jthread thread_;
};

}  // namespace waywiser::measure
