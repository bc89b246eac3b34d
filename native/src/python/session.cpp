// Bindings of sessions; outcomes are columns and plain values.
#include "waywiser/session.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "python/bindings.hpp"
#include "ranks/messenger.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

const char* text(Placement::State state) {
    switch (state) {
        case Placement::State::verified: return "verified";
        case Placement::State::misplaced: return "misplaced";
        case Placement::State::unverified: break;
    }
    return "unverified";
}

// As columns, since that is how samples are stored and analysed.
nb::dict sample_columns(const std::vector<Sample>& samples) {
    nb::list span, host, skew, repetitions, flags, transfers, lanes, alone;
    for (const Sample& sample : samples) {
        span.append(sample.span);
        host.append(sample.host);
        skew.append(sample.skew);
        repetitions.append(sample.repetitions);
        flags.append(sample.flags);
        transfers.append(sample.transfers);
        if (!sample.lanes.empty()) lanes.append(sample.lanes);
        if (!sample.alone.empty()) alone.append(sample.alone);
    }
    nb::dict columns;
    columns["span"] = span;
    columns["host"] = host;
    columns["skew"] = skew;
    columns["repetitions"] = repetitions;
    columns["flags"] = flags;
    columns["transfers"] = transfers;
    columns["lanes"] = lanes;
    columns["alone"] = alone;
    return columns;
}

nb::dict outcome_dict(const Outcome& outcome) {
    nb::list buffers;
    for (const PlacedBuffer& buffer : outcome.buffers) {
        nb::dict entry;
        entry["memory"] = buffer.memory;
        entry["state"] = text(buffer.placement.state);
        entry["fraction_on_place"] = buffer.placement.fraction_on_place;
        entry["fraction_huge"] = buffer.placement.fraction_huge;
        entry["detail"] = buffer.placement.detail;
        entry["gpu_seconds"] = buffer.gpu_seconds;
        buffers.append(entry);
    }
    nb::dict result;
    result["mode"] = text(outcome.mode);
    result["stop"] = outcome.stop;
    result["gate"] = outcome.gate;
    result["notes"] = outcome.notes;
    result["setup_seconds"] = outcome.setup_seconds;
    result["sampling_seconds"] = outcome.sampling_seconds;
    result["buffer_bytes"] = outcome.buffer_bytes;
    result["pool_peak_bytes"] = outcome.pool_peak_bytes;
    result["buffers"] = buffers;
    result["samples"] = sample_columns(outcome.samples);
    return result;
}

Cache parse_cache(const std::string& cache) {
    if (cache == "warm") return Cache::warm;
    if (cache == "dirtied") return Cache::dirtied;
    if (cache == "flushed") return Cache::flushed;
    throw NotSupported("there is no cache state '" + cache + "': write warm, dirtied or flushed");
}

nb::dict locality_dict(const LocalityOutcome& outcome) {
    nb::list blocks;
    for (const BlockLocality& block : outcome.blocks) {
        nb::dict entry;
        entry["state"] = text(block.placement.state);
        entry["copies"] = block.copies;
        entry["reads"] = block.reads;
        blocks.append(entry);
    }
    nb::dict result;
    result["gpus"] = outcome.gpus;
    result["cpus"] = outcome.cpus;
    result["sweeps"] = outcome.sweeps;
    result["blocks"] = blocks;
    result["seconds"] = outcome.seconds;
    return result;
}

nb::dict measure_locality(Session& session, Memory memory, std::size_t blocks, std::size_t bytes,
                          std::size_t rounds, std::vector<int> cpus, std::size_t sweeps,
                          double pause) {
    const LocalityRequest request{.memory = std::move(memory),
                                  .blocks = blocks,
                                  .bytes = bytes,
                                  .rounds = rounds,
                                  .cpus = std::move(cpus),
                                  .sweeps = sweeps,
                                  .pause = pause};
    LocalityOutcome outcome;
    {
        const nb::gil_scoped_release measuring;
        outcome = session.locality(request);
    }
    return locality_dict(outcome);
}

const char* text(WhileOccupied found) {
    switch (found) {
        case WhileOccupied::ended: return "ended";
        case WhileOccupied::waited: return "waited";
        case WhileOccupied::undecided: break;
    }
    return "undecided";
}

nb::dict observation_dict(const Observation& observation) {
    nb::dict entry;
    entry["found"] = text(observation.found);
    entry["reason"] = observation.reason;
    entry["alone_seconds"] = observation.alone_seconds;
    entry["held_seconds"] = observation.held_seconds;
    entry["after_seconds"] = observation.after_seconds;
    return entry;
}

nb::dict observe_copies(Session& session, int gpu, std::vector<Transfer> transfers) {
    const WhoCopiesRequest request{.gpu = gpu, .transfers = std::move(transfers)};
    WhoCopiesOutcome outcome;
    {
        const nb::gil_scoped_release observing;
        outcome = session.who_copies(request);
    }
    nb::list copies;
    for (const Observation& each : outcome.copies) copies.append(observation_dict(each));
    nb::dict result;
    result["kernel"] = observation_dict(outcome.kernel);
    result["fill"] = observation_dict(outcome.fill);
    result["copies"] = copies;
    result["seconds"] = outcome.seconds;
    return result;
}

nb::dict measure_workload(Session& session, std::vector<Transfer> transfers,
                          std::optional<OperationCall> operation, const std::string& cache,
                          bool shared, const StopRule& rule, std::uint64_t seed,
                          const nb::object& progress, const nb::object& evidence) {
    const Request request{.transfers = std::move(transfers),
                          .operation = std::move(operation),
                          .cache = parse_cache(cache),
                          .shared = shared,
                          .rule = rule,
                          .seed = seed};
    std::function<void(const Progress&)> report;
    if (!progress.is_none()) {
        report = [&progress](const Progress& now) {
            const nb::gil_scoped_acquire python;
            progress(now.samples, now.median, now.low, now.high);
        };
    }
    Evidence watch;
    if (!evidence.is_none()) {
        watch = [&evidence](std::size_t executions) {
            const nb::gil_scoped_acquire python;
            evidence(executions);
        };
    }
    Outcome outcome;
    {
        const nb::gil_scoped_release measuring;
        outcome = session.measure(request, report, watch);
    }
    return outcome_dict(outcome);
}

void bind_stop_rule(nb::module_& m) {
    nb::class_<StopRule>(m, "StopRule")
        .def(
            "__init__",
            [](StopRule* self, double target, double wanted, std::size_t minimum,
               std::size_t slow_minimum, double slow_seconds, std::size_t maximum,
               double minimum_seconds, double soft_seconds, double hard_seconds) {
                new (self)
                    StopRule{target,  wanted,          minimum,      slow_minimum, slow_seconds,
                             maximum, minimum_seconds, soft_seconds, hard_seconds};
            },
            nb::kw_only(), "target"_a = StopRule{}.target, "wanted"_a = StopRule{}.wanted,
            "minimum"_a = StopRule{}.minimum, "slow_minimum"_a = StopRule{}.slow_minimum,
            "slow_seconds"_a = StopRule{}.slow_seconds, "maximum"_a = StopRule{}.maximum,
            "minimum_seconds"_a = StopRule{}.minimum_seconds,
            "soft_seconds"_a = StopRule{}.soft_seconds, "hard_seconds"_a = StopRule{}.hard_seconds);
}

}  // namespace

void bind_session(nb::module_& m) {
    bind_stop_rule(m);
    nb::class_<Session>(m, "Session")
        .def(
            "__init__",
            [](Session* self, Machine machine, bool peer_access, std::size_t memory_bytes,
               double watchdog_seconds, std::vector<Transfer> host_timed, bool sides,
               ranks::Messenger* messenger) {
                new (self) Session(std::move(machine), {.peer_access = peer_access,
                                                        .memory_bytes = memory_bytes,
                                                        .watchdog_seconds = watchdog_seconds,
                                                        .host_timed = std::move(host_timed),
                                                        .sides = sides,
                                                        .messenger = messenger});
            },
            "machine"_a, nb::kw_only(), "peer_access"_a = true,
            "memory_bytes"_a = SessionOptions{}.memory_bytes,
            "watchdog_seconds"_a = SessionOptions{}.watchdog_seconds,
            "host_timed"_a = std::vector<Transfer>(), "sides"_a = false, "messenger"_a = nb::none(),
            nb::keep_alive<1, 8>())
        .def("open", &Session::open, "gpus"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("measure", &measure_workload, "transfers"_a, nb::kw_only(), "operation"_a = nb::none(),
             "cache"_a = "warm", "shared"_a = false, "rule"_a, "seed"_a = 1,
             "progress"_a = nb::none(), "evidence"_a = nb::none())
        .def("locality", &measure_locality, "memory"_a, nb::kw_only(),
             "blocks"_a = LocalityRequest{}.blocks, "bytes"_a = LocalityRequest{}.bytes,
             "rounds"_a = LocalityRequest{}.rounds, "cpus"_a = std::vector<int>(),
             "sweeps"_a = LocalityRequest{}.sweeps, "pause"_a = LocalityRequest{}.pause)
        .def("who_copies", &observe_copies, "gpu"_a, "transfers"_a)
        .def("underway", &Session::underway);
}

}  // namespace waywiser
