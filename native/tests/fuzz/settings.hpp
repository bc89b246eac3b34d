// What a run of the fuzzer does: its command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace waywiser::fuzz {

struct Settings {
    std::uint64_t seed = 0;             // of the first round; each round after it has the next one
    double seconds = 10;                // no round starts later
    std::size_t rounds = 0;             // no more than these; 0: no limit
    std::size_t threads = 0;            // in each round; 0: 1 to 8, drawn
    std::size_t operations = 40;        // of each thread in a round
    bool faults = false;                // calls of the GPU runtime fail, in half of the rounds
    bool hangs = false;                 // a GPU does not answer for some seconds, in some rounds
    bool list = false;                  // only lists what there is
    bool quiet = false;                 // no line for each round
    std::vector<std::string> only;      // kinds of operations; empty: all
    std::vector<std::string> compare;   // two kinds of contexts, with which each round is made
    std::vector<std::string> contexts;  // the kinds of contexts to draw from; empty: all
    std::string fake;                   // more configuration of the fake GPU, see fake.hpp
    std::string folder = "/tmp";        // for files without a name

    // The command that makes the round of this seed again.
    [[nodiscard]] std::string command(std::uint64_t round_seed) const;
    [[nodiscard]] bool chooses(const std::string& operation) const;
};

// Prints a message and exits if an argument is not known.
Settings read_settings(int count, char** arguments);

}  // namespace waywiser::fuzz
