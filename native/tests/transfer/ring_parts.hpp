// The parts of an engine that rings use.
#pragma once

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "transfer/copy_streams.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/engine_options.hpp"
#include "transfer/event_pool.hpp"
#include "transfer/polite_queues.hpp"
#include "transfer/schedule.hpp"
#include "transfer/staging_pools.hpp"
#include "transfer/statistics.hpp"
#include "transfer/warnings.hpp"
#include "units.hpp"

namespace waywiser::transfer {

// Without threads.
class RingParts : public test::OnFake {
protected:
    const Machine machine = test::this_machine();
    const EngineOptions options = completed({.threads = 1, .pinned_bytes = 64 * kMiB});
    Warnings warnings{options.report_warnings, options.log, options.cpus};
    Statistics statistics;
    StagingPools staging{machine, options, warnings, statistics, [] {}};
    EventPool events;
    CopyStreams streams;
    PoliteQueues queues{0};
    CopyThreads threads{machine, {}, 0, [](int) {}};
    Schedule schedule{threads, 1, 1, 0};
    const RingResources resources{.staging = staging,
                                  .events = events,
                                  .streams = streams,
                                  .queues = queues,
                                  .schedule = schedule,
                                  .stay_seconds = 1e-4};
};

}  // namespace waywiser::transfer
