// Who copies: copy engines, or multiprocessors? A kernel occupies all multiprocessors of the GPUs
// at the ends of a transfer. If the transfer ends meanwhile, it needed none of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "measure/prepared_workload.hpp"
#include "waywiser/session.hpp"

namespace waywiser::measure {

// Launches a kernel of one thread that does nothing.
void launch_short_kernel(const gpu::Stream& stream);

// Work that is observed.
struct Observed {
    std::vector<int> gpus;         // all of them are occupied
    std::function<void()> submit;  // may return when the work has ended
    std::function<bool()> done;    // whether what was submitted has ended
};

// How it runs without an occupation.
struct Alone {
    double seconds = 0;  // from the call to completion
    bool blocks = false;
};

class Occupier {
public:
    explicit Occupier(Streams& streams) : streams_(streams) {}

    // A kernel that needs one multiprocessor: it must wait, or nothing else is decided.
    Observation kernel(int gpu);
    Observation fill(int gpu);
    Observation observe(const Observed& work);

private:
    gpu::Occupation& occupation(int gpu);
    // One occupation during which the work is submitted.
    Observation attempt(const Observed& work, const Alone& alone, double patience);
    [[nodiscard]] std::vector<gpu::Occupation*> occupations(const std::vector<int>& gpus);

    Streams& streams_;
    std::map<int, std::unique_ptr<gpu::Occupation>> occupations_;
};

// A transfer that is prepared, filled, and the only one of its workload.
Observation observe(Occupier& occupier, const PreparedWorkload& prepared);

// Replaces what was found by "undecided", with the reason, if the outcome as a whole does not prove
// it: a kernel did not wait, or nothing at all ended, so that something else may have delayed it.
void withdraw_unproven(WhoCopiesOutcome& outcome);

}  // namespace waywiser::measure
