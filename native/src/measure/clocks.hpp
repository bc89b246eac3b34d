// Raises a GPU's clocks once per session, before anything is timed on it.
#pragma once

#include <set>

namespace waywiser::measure {

class ClockRaiser {
public:
    void raise(int gpu);  // takes 0.1 s the first time, nothing later

private:
    std::set<int> raised_;
};

}  // namespace waywiser::measure
