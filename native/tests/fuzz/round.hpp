// A round: threads, contexts, a fake GPU and its faults, all drawn from one seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/settings.hpp"

namespace waywiser::fuzz {

// Makes a round; with --compare it makes it twice. Ends the process if anything is wrong.
void play_round(const Settings& settings, std::uint64_t seed);

// The faults that a round may have, with N for a number: settings of the fake GPU.
std::vector<std::string> fault_names();

}  // namespace waywiser::fuzz
