// The native library as Python sees it; _native.pyi is the contract. Thin: words in, samples out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "gpu/gpu.hpp"
#include "host/hwloc.hpp"
#include "measure/interval.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/operation.hpp"
#include "waywiser/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

const char* text(ParameterKind kind) {
    switch (kind) {
        case ParameterKind::choice: return "choice";
        case ParameterKind::ordered: return "ordered";
        case ParameterKind::subset: break;
    }
    return "subset";
}

const char* text(TimingMode mode) { return mode == TimingMode::device ? "device" : "host"; }

const char* text(Place::Kind kind) {
    switch (kind) {
        case Place::Kind::numa: return "numa";
        case Place::Kind::gpu: return "gpu";
        case Place::Kind::file: break;
    }
    return "file";
}

const char* text(Placement::State state) {
    switch (state) {
        case Placement::State::verified: return "verified";
        case Placement::State::misplaced: return "misplaced";
        case Placement::State::unverified: break;
    }
    return "unverified";
}

const char* text(gpu::Failure kind) {
    switch (kind) {
        case gpu::Failure::other: return "other";
        case gpu::Failure::out_of_memory: return "out_of_memory";
        case gpu::Failure::sticky: return "sticky";
        case gpu::Failure::unavailable: break;
    }
    return "unavailable";
}

nb::list parameter_list(const std::vector<Parameter>& parameters) {
    nb::list list;
    for (const Parameter& parameter : parameters) {
        nb::dict entry;
        entry["name"] = parameter.name;
        entry["description"] = parameter.description;
        entry["kind"] = text(parameter.kind);
        entry["choices"] = parameter.choices;
        list.append(entry);
    }
    return list;
}

nb::dict info_dict(const Info& info) {
    nb::dict entry;
    entry["name"] = info.name;
    entry["description"] = info.description;
    entry["source"] = info.source;
    entry["parameters"] = parameter_list(info.parameters);
    return entry;
}

nb::list place_kind_list(const std::vector<Place::Kind>& kinds) {
    nb::list list;
    for (const Place::Kind kind : kinds) list.append(text(kind));
    return list;
}

nb::list layouts_of(const Executor& executor) {
    nb::list list;
    for (const char* layout : {"contiguous", "box", "list"}) {
        if (executor.serves(Layout::parse_kind(layout))) list.append(layout);
    }
    return list;
}

nb::list memory_list() {
    nb::list list;
    for (const auto& kind : Memories::instance().entries()) {
        nb::dict entry = info_dict(kind->info());
        entry["places"] = place_kind_list(kind->place_kinds());
        entry["needs_gpu"] = kind->needs_gpu();
        entry["cpu_accessible"] = kind->cpu_accessible();
        list.append(entry);
    }
    return list;
}

nb::list executor_list() {
    nb::list list;
    for (const auto& executor : Executors::instance().entries()) {
        nb::dict entry = info_dict(executor->info());
        entry["layouts"] = layouts_of(*executor);
        list.append(entry);
    }
    return list;
}

nb::list operation_list() {
    nb::list list;
    for (const auto& operation : Operations::instance().entries()) {
        nb::dict entry = info_dict(operation->info());
        entry["places"] = place_kind_list(operation->place_kinds());
        entry["timing"] = text(operation->timing(operation->place_kinds().front()));
        list.append(entry);
    }
    return list;
}

nb::list gpu_list() {
    nb::list list;
    for (int index = 0; index < gpu::device_count(); ++index) {
        const gpu::Device device = gpu::device(index);
        nb::dict entry;
        entry["index"] = device.index;
        entry["name"] = device.name;
        entry["uuid"] = device.uuid;
        entry["pci"] = device.pci;
        entry["compute"] =
            std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor);
        entry["multiprocessors"] = device.multiprocessors;
        entry["memory_bytes"] = device.memory_bytes;
        entry["free_bytes"] = gpu::free_bytes(index);
        entry["l2_bytes"] = device.l2_bytes;
        entry["pageable_access"] = device.pageable_access;
        entry["concurrent_managed"] = device.concurrent_managed;
        entry["memory_pools"] = device.memory_pools;
        entry["vmm"] = device.vmm;
        entry["ipc"] = device.ipc;
        entry["host_native_atomics"] = device.host_native_atomics;
        list.append(entry);
    }
    return list;
}

std::vector<std::string> gpu_uuids() {
    std::vector<std::string> uuids;
    for (int index = 0; index < gpu::device_count(); ++index) {
        uuids.push_back(gpu::device(index).uuid);
    }
    return uuids;
}

const Executor& executor_of(const Transfer& transfer) {
    const Executor* executor = Executors::instance().find(transfer.path.executor);
    if (executor == nullptr) {
        throw Refused("there is no executor '" + transfer.path.executor + "'");
    }
    return *executor;
}

// Columns, since that is how they are stored and analysed.
nb::dict sample_columns(const std::vector<Sample>& samples) {
    nb::list span, host, skew, repetitions, flags, transfers;
    for (const Sample& sample : samples) {
        span.append(sample.span);
        host.append(sample.host);
        skew.append(sample.skew);
        repetitions.append(sample.repetitions);
        flags.append(sample.flags);
        transfers.append(sample.transfers);
    }
    nb::dict columns;
    columns["span"] = span;
    columns["host"] = host;
    columns["skew"] = skew;
    columns["repetitions"] = repetitions;
    columns["flags"] = flags;
    columns["transfers"] = transfers;
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
    throw Refused("there is no cache state '" + cache + "': write warm, dirtied or flushed");
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
    std::function<void(const Progress&)> tell;
    if (!progress.is_none()) {
        tell = [&progress](const Progress& now) {
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
        outcome = session.measure(request, tell, watch);
    }
    return outcome_dict(outcome);
}

void bind_words(nb::module_& m) {
    nb::class_<Memory>(m, "Memory")
        .def(
            "__init__",
            [](Memory* self, std::string kind, const std::string& place, Settings variant) {
                new (self) Memory{std::move(kind), Place::parse(place), std::move(variant)};
            },
            "kind"_a, "place"_a, "variant"_a = Settings())
        .def("__str__", &Memory::text);
    nb::class_<Transfer>(m, "Transfer")
        .def(
            "__init__",
            [](Transfer* self, Memory source, Memory destination, std::string executor,
               std::size_t bytes, Settings parameters, const std::string& layout,
               Settings layout_settings) {
                new (self)
                    Transfer{{std::move(source), std::move(destination), std::move(executor)},
                             bytes,
                             std::move(parameters),
                             {Layout::parse_kind(layout), std::move(layout_settings)}};
            },
            "source"_a, "destination"_a, "executor"_a, "bytes"_a, "parameters"_a = Settings(),
            "layout"_a = "contiguous", "layout_settings"_a = Settings())
        .def("__str__", &Transfer::text);
    nb::class_<OperationCall>(m, "Operation")
        .def(
            "__init__",
            [](OperationCall* self, std::string name, const std::string& place,
               Settings parameters) {
                new (self)
                    OperationCall{std::move(name), Place::parse(place), std::move(parameters)};
            },
            "name"_a, "place"_a, "parameters"_a = Settings())
        .def("__str__", &OperationCall::text);
    nb::class_<NumaNode>(m, "NumaNode")
        .def(
            "__init__",
            [](NumaNode* self, int index, std::vector<int> cpus) {
                new (self) NumaNode{index, std::move(cpus)};
            },
            "index"_a, "cpus"_a);
    nb::class_<GpuPlace>(m, "GpuPlace")
        .def(
            "__init__",
            [](GpuPlace* self, int index, std::string uuid, int numa, std::vector<int> peers,
               bool pageable_access) {
                new (self)
                    GpuPlace{index, std::move(uuid), numa, std::move(peers), pageable_access};
            },
            "index"_a, "uuid"_a, "numa"_a, "peers"_a, "pageable_access"_a);
    nb::class_<FilePlace>(m, "FilePlace")
        .def(
            "__init__",
            [](FilePlace* self, std::string name, std::string path, bool scratch, std::size_t bytes,
               std::string filesystem, bool direct) {
                new (self) FilePlace{std::move(name), std::move(path),       scratch,
                                     bytes,           std::move(filesystem), direct};
            },
            "name"_a, "path"_a, "scratch"_a, "bytes"_a, "filesystem"_a, "direct"_a = true);
    nb::class_<Machine>(m, "Machine")
        .def(
            "__init__",
            [](Machine* self, std::vector<NumaNode> numa, std::vector<GpuPlace> gpus,
               std::vector<FilePlace> files) {
                new (self) Machine{std::move(numa), std::move(gpus), std::move(files)};
            },
            "numa"_a, "gpus"_a, "files"_a = std::vector<FilePlace>());
}

void bind_registry(nb::module_& m) {
    m.def("memories", &memory_list);
    m.def("executors", &executor_list);
    m.def("operations", &operation_list);
    m.def(
        "operation_refusal",
        [](const OperationCall& call, const Machine& machine) { return refusal(call, machine); },
        "operation"_a, "machine"_a);
    m.def(
        "operation_parameters",
        [](const OperationCall& call, const Machine& machine) {
            const Operation* operation = Operations::instance().find(call.name);
            if (operation == nullptr) {
                throw Refused("there is no operation '" + call.name + "'");
            }
            return parameter_list(operation->parameters(call.place, machine));
        },
        "operation"_a, "machine"_a);
    m.def(
        "refusal",
        [](const Transfer& transfer, const Machine& machine) { return refusal(transfer, machine); },
        "transfer"_a, "machine"_a);
    m.def(
        "parameters",
        [](const Transfer& transfer, const Machine& machine) {
            return parameter_list(executor_of(transfer).parameters(transfer, machine));
        },
        "transfer"_a, "machine"_a);
    m.def(
        "timing",
        [](const Transfer& transfer, const Machine& machine) {
            return text(executor_of(transfer).timing(transfer, machine));
        },
        "transfer"_a, "machine"_a);
    m.def(
        "peer_access",
        [](const Transfer& transfer, const Machine& machine) {
            return executor_of(transfer).peer_access(transfer, machine);
        },
        "transfer"_a, "machine"_a);
    m.def(
        "in_place",
        [](const Transfer& transfer, const Machine& machine) {
            return executor_of(transfer).in_place(transfer, machine);
        },
        "transfer"_a, "machine"_a);
    m.def(
        "repeatable",
        [](const Transfer& transfer, const Machine& machine) {
            return executor_of(transfer).repeatable(transfer, machine);
        },
        "transfer"_a, "machine"_a);
    m.def(
        "extents",
        [](const Transfer& transfer) {
            return nb::make_tuple(arrange(transfer, Side::source).extent,
                                  arrange(transfer, Side::destination).extent);
        },
        "transfer"_a);
}

void bind_session(nb::module_& m) {
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
    nb::class_<Session>(m, "Session")
        .def(
            "__init__",
            [](Session* self, Machine machine, bool peer_access, std::size_t memory_bytes,
               double watchdog_seconds, std::vector<Transfer> host_timed, bool sides) {
                new (self) Session(std::move(machine), {.peer_access = peer_access,
                                                        .memory_bytes = memory_bytes,
                                                        .watchdog_seconds = watchdog_seconds,
                                                        .host_timed = std::move(host_timed),
                                                        .sides = sides});
            },
            "machine"_a, nb::kw_only(), "peer_access"_a = true,
            "memory_bytes"_a = SessionOptions{}.memory_bytes,
            "watchdog_seconds"_a = SessionOptions{}.watchdog_seconds,
            "host_timed"_a = std::vector<Transfer>(), "sides"_a = false)
        .def("measure", &measure_workload, "transfers"_a, nb::kw_only(), "operation"_a = nb::none(),
             "cache"_a = "warm", "shared"_a = false, "rule"_a, "seed"_a = 1,
             "progress"_a = nb::none(), "evidence"_a = nb::none())
        .def("locality", &measure_locality, "memory"_a, nb::kw_only(),
             "blocks"_a = LocalityRequest{}.blocks, "bytes"_a = LocalityRequest{}.bytes,
             "rounds"_a = LocalityRequest{}.rounds, "cpus"_a = std::vector<int>(),
             "sweeps"_a = LocalityRequest{}.sweeps, "pause"_a = LocalityRequest{}.pause);
}

// gpu::Error with its fields: args == (message, kind, call, code, name, where).
void bind_errors(nb::module_& m) {
    static nb::handle
        gpu_error;  // the module's own; an object would be released after Python ended
    const std::string name = nb::cast<std::string>(m.attr("__name__")) + ".GpuError";
    const nb::object made =
        nb::steal(PyErr_NewException(name.c_str(), PyExc_RuntimeError, nullptr));
    m.attr("GpuError") = made;
    gpu_error = nb::object(made).release();
    nb::register_exception_translator([](const std::exception_ptr& error, void*) {
        try {
            std::rethrow_exception(error);
        } catch (const gpu::Error& e) {
            const std::string where =
                std::string(e.where().file_name()) + ":" + std::to_string(e.where().line());
            const nb::object fields =
                nb::make_tuple(e.what(), text(e.kind()), e.call(), e.code(), e.name(), where);
            PyErr_SetObject(gpu_error.ptr(), fields.ptr());
        }
    });
    nb::exception<Refused>(m, "Refused", PyExc_RuntimeError);
    nb::exception<WrongBytes>(m, "WrongBytes", PyExc_RuntimeError);
    nb::exception<BlocksBehindGate>(m, "BlocksBehindGate", PyExc_RuntimeError);
}

}  // namespace
}  // namespace waywiser

NB_MODULE(_native, m) {
    using namespace waywiser;
    nb::set_leak_warnings(false);  // a killed or failing worker is no leak
    m.attr("backend") = gpu::backend();
    m.attr("runtime_version") = gpu::runtime_version();
    m.attr("hwloc_version") = host::hwloc_version();
    bind_errors(m);
    bind_words(m);
    bind_registry(m);
    bind_session(m);
    m.def("median_interval", [](std::vector<double> samples) {
        const measure::Interval interval = measure::median_interval(std::move(samples));
        return nb::make_tuple(interval.median, interval.low, interval.high);
    });
    m.def(
        "hwloc_xml",
        [](const std::optional<std::string>& source) {
            try {
                return host::hwloc_xml(source);
            } catch (const std::runtime_error& error) {
                throw nb::value_error(error.what());
            }
        },
        "source"_a = nb::none());
    m.def("gpu_unavailable_reason", &gpu::unavailable_reason);
    m.def("gpu_uuids", &gpu_uuids);
    m.def("gpus", &gpu_list);
}
