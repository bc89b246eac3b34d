// A measurement in ranks that are threads, which may end in an error that every rank has of its
// own.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ranks/thread_messenger.hpp"
#include "waywiser/session.hpp"

namespace waywiser::test {

// Of each rank, in order.
struct RankMeasurements {
    std::vector<Outcome> outcomes;
    std::vector<std::string> said;  // the error instead of an outcome, or nothing
};

// Measures in the session of one rank. Throws what ends all ranks.
inline void measure_as_rank(RankMeasurements& found, ranks::Messenger& messenger, Session& session,
                            const Request& request) {
    const auto rank = static_cast<std::size_t>(messenger.rank());
    try {
        found.outcomes[rank] = session.measure(request, nullptr);
    } catch (const NotSupported& error) {
        found.said[rank] = error.what();
    } catch (const WrongBytes& error) {
        found.said[rank] = error.what();
    } catch (const OtherRankFailed& error) {
        found.said[rank] = error.what();
    }
}

// `memory(rank)` is what the session of a rank may allocate. Throws what ends all ranks.
inline RankMeasurements measure_in_ranks(ThreadWorld& world, const Machine& machine,
                                         const Request& request,
                                         const std::function<std::size_t(int rank)>& memory) {
    const auto ranks = static_cast<std::size_t>(world.size());
    RankMeasurements found{std::vector<Outcome>(ranks), std::vector<std::string>(ranks)};
    world.run([&](ranks::Messenger& messenger) {
        Session session(machine,
                        {.memory_bytes = memory(messenger.rank()), .messenger = &messenger});
        measure_as_rank(found, messenger, session, request);
    });
    return found;
}

}  // namespace waywiser::test
