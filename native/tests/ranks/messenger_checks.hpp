// What every messenger does: tests run it over threads, and over the MPI of the machine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ranks/messenger.hpp"

namespace waywiser::test {

// Exchanges messages of 0, 1, 7 and `largest` bytes, and multiples of them, in each way among all
// ranks, which call it together. Returns a line for each message with wrong bytes in this rank;
// throws MessengerError for a call that fails or does not fail when it should.
// `knows_sizes`: it throws for a message of another size.
std::vector<std::string> check_messenger(ranks::Messenger& messenger, std::size_t largest,
                                         bool knows_sizes = true);

}  // namespace waywiser::test
