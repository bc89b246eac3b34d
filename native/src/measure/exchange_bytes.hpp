// The bytes of transfers among several memories: each source has a pattern of its own,
// and what arrives is one of them, or the sums of all. Sums are exact, in any order, since they are
// of numbers modulo 2^32 or of small whole numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "measure/pattern.hpp"
#include "waywiser/executor.hpp"

namespace waywiser::measure {

// Of one memory, which is at a GPU: the n-th, of so many sources.
void fill_source(const View& source, const Exchange& exchange, std::uint64_t seed, std::size_t n);
void poison_destination(const View& destination, const Exchange& exchange, std::uint64_t seed,
                        std::size_t n, std::size_t sources);
// Whether it still has its bytes.
Mismatch check_source(const View& source, const Exchange& exchange, std::uint64_t seed,
                      std::size_t n);
Mismatch check_destination(const View& destination, const Exchange& exchange, std::uint64_t seed,
                           std::size_t n, std::size_t sources);

// Of all memories of a process.
void fill_sources(const View& sources, const Exchange& exchange, std::uint64_t seed);
// Destinations get the complement of what is to arrive.
void poison_destinations(const View& destinations, const Exchange& exchange, std::uint64_t seed);

struct WrongArrival {
    Mismatch wrong;  // `first` is an offset in the destination
    Place place;     // of the destination
};
// Returns what is wrong at the first destination with wrong bytes; no count if all are right.
WrongArrival check_destinations(const View& destinations, const Exchange& exchange,
                                std::uint64_t seed);

}  // namespace waywiser::measure
