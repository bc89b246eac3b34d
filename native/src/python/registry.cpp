// Bindings of the registries and their queries about a transfer on a machine.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>

#include "nccl/library.hpp"
#include "python/bindings.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/operation.hpp"

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

const char* text(Place::Kind kind) {
    switch (kind) {
        case Place::Kind::numa: return "numa";
        case Place::Kind::gpu: return "gpu";
        case Place::Kind::rank: return "rank";
        case Place::Kind::file: break;
    }
    return "file";
}

const char* text(PathClass paths) {
    switch (paths) {
        case PathClass::host: return "host";
        case PathClass::gpu: return "gpu";
        case PathClass::unified: return "unified";
        case PathClass::file: return "file";
        case PathClass::none: break;
    }
    return "";
}

const char* text(Family family) {
    switch (family) {
        case Family::runtime_copy: return "copies of the runtime";
        case Family::kernel: return "kernels";
        case Family::cpu: return "CPUs";
        case Family::unified_memory: return "unified memory";
        case Family::file: return "files";
        case Family::staged: return "staged copies";
        case Family::other: break;
    }
    return "other";
}

const char* text(Route route) {
    switch (route) {
        case Route::through_host: return "through host";
        case Route::over_relays: return "over relays";
        case Route::between_ranks: return "between ranks";
        case Route::shortest: break;
    }
    return "shortest";
}

nb::list parameter_list(const std::vector<Parameter>& parameters) {
    nb::list list;
    for (const Parameter& parameter : parameters) {
        nb::dict entry;
        entry["name"] = parameter.name;
        entry["description"] = parameter.description;
        entry["kind"] = text(parameter.kind);
        entry["choices"] = parameter.choices;
        entry["written"] = parameter.written;
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

nb::list shares_list(const Shares& shares) {
    nb::list list;
    if (shares.links) list.append("links");
    if (shares.host_memory) list.append("host memory");
    if (shares.cpus) list.append("CPUs");
    if (shares.file_system) list.append("file system");
    return list;
}

nb::list call_list(const std::vector<Call>& calls) {
    nb::list list;
    for (const Call& call : calls) {
        nb::dict entry;
        entry["text"] = call.text;
        entry["settings"] = call.settings;
        entry["between"] = call.between
                               ? place_kind_list({call.between->first, call.between->second})
                               : nb::list();
        entry["two_places"] = call.two_places;
        entry["defaults"] = call.defaults;
        list.append(entry);
    }
    return list;
}

// The traits for readers of profiles, with the entry's name.
nb::dict traits_dict(const std::string& name, const Traits& traits) {
    nb::dict entry;
    entry["name"] = name;
    entry["family"] = text(traits.family);
    entry["shares"] = shares_list(traits.shares);
    entry["route"] = text(traits.route);
    entry["reference"] = text(traits.reference);
    entry["bystander"] = traits.bystander;
    entry["either_unit"] = traits.either_unit;
    if (!traits.alternative.executor.empty()) {
        nb::dict alternative;
        alternative["executor"] = traits.alternative.executor;
        alternative["question"] = traits.alternative.question;
        alternative["own"] = traits.alternative.own;
        alternative["other"] = traits.alternative.other;
        alternative["host_only"] = traits.alternative.host_only;
        entry["alternative"] = alternative;
    }
    entry["calls"] = call_list(traits.calls);
    nb::dict library;
    library["contiguous"] = traits.library.contiguous;
    library["lists"] = traits.library.lists;
    library["settings"] = traits.library.settings;
    entry["library"] = library;
    return entry;
}

nb::dict traits_dict(const MemoryKind& kind) {
    const MemoryTraits traits = kind.traits();
    nb::dict entry;
    entry["name"] = kind.info().name;
    entry["places"] = place_kind_list(kind.place_kinds());
    entry["page_locked"] = kind.page_locked();
    entry["migrates"] = kind.migrates();
    entry["cpu_accessible"] = kind.cpu_accessible();
    entry["reference"] = text(traits.reference);
    entry["same_as"] = traits.same_as;
    return entry;
}

nb::list memory_list() {
    nb::list list;
    for (const auto& kind : Memories::instance().entries()) {
        nb::dict entry = info_dict(kind->info());
        entry["places"] = place_kind_list(kind->place_kinds());
        entry["needs_gpu"] = kind->needs_gpu();
        entry["cpu_accessible"] = kind->cpu_accessible();
        entry["traits"] = traits_dict(*kind);
        list.append(entry);
    }
    return list;
}

nb::list executor_list() {
    nb::list list;
    for (const auto& executor : Executors::instance().entries()) {
        nb::dict entry = info_dict(executor->info());
        entry["layouts"] = layouts_of(*executor);
        const Traits traits = executor->traits();
        entry["least_bytes"] = traits.least_bytes;
        entry["survey_only"] = traits.survey_only;
        entry["settings_on_request"] = traits.settings_on_request;
        entry["comparison"] = traits.comparison;
        entry["in_sets"] = traits.in_sets;
        entry["among_several"] = traits.among_several;
        entry["among_ranks"] = traits.among_ranks;
        entry["loads"] = traits.loads;
        entry["traits"] = traits_dict(executor->info().name, traits);
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

const Executor& executor_of(const Transfer& transfer) {
    const Executor* executor = Executors::instance().find(transfer.path.executor);
    if (executor == nullptr) {
        throw NotSupported("there is no executor '" + transfer.path.executor + "'");
    }
    return *executor;
}

nb::dict requirements_dict(const Requirements& needs) {
    nb::dict entry;
    entry["threads"] = needs.threads;
    entry["pinned_bytes"] = needs.pinned_bytes;
    entry["device_bytes"] = needs.device_bytes;
    entry["peers"] = needs.peers;
    entry["host_links"] = needs.host_links;
    return entry;
}

// Binds a question that the executor of a transfer answers.
template <class Answer>
void bind_question(nb::module_& m, const char* name, Answer answer) {
    m.def(
        name,
        [answer](const Transfer& transfer, const Machine& machine) {
            return std::invoke(answer, executor_of(transfer), transfer, machine);
        },
        "transfer"_a, "machine"_a);
}

void bind_transfers(nb::module_& m) {
    m.def(
        "unsupported_reason",
        [](const Transfer& transfer, const Machine& machine) {
            return unsupported_reason(transfer, machine);
        },
        "transfer"_a, "machine"_a);
    using E = const Executor&;
    using T = const Transfer&;
    using M = const Machine&;
    bind_question(m, "parameters", [](E executor, T transfer, M machine) {
        return parameter_list(executor.parameters(transfer, machine));
    });
    bind_question(m, "timing", [](E executor, T transfer, M machine) {
        return text(executor.timing(transfer, machine));
    });
    bind_question(m, "requirements", [](E executor, T transfer, M machine) {
        return requirements_dict(executor.requirements(transfer, machine));
    });
    bind_question(m, "peer_access", &Executor::peer_access);
    bind_question(m, "in_place", &Executor::in_place);
    bind_question(m, "repeatable", &Executor::repeatable);
    m.def(
        "extents",
        [](const Transfer& transfer) {
            return nb::make_tuple(arrange(transfer, Side::source).extent,
                                  arrange(transfer, Side::destination).extent);
        },
        "transfer"_a);
}

void bind_operations(nb::module_& m) {
    m.def(
        "operation_unsupported_reason",
        [](const OperationCall& call, const Machine& machine) {
            return unsupported_reason(call, machine);
        },
        "operation"_a, "machine"_a);
    m.def(
        "operation_parameters",
        [](const OperationCall& call, const Machine& machine) {
            const Operation* operation = Operations::instance().find(call.name);
            if (operation == nullptr) {
                throw NotSupported("there is no operation '" + call.name + "'");
            }
            return parameter_list(operation->parameters(call.place, machine));
        },
        "operation"_a, "machine"_a);
}

}  // namespace

void bind_registry(nb::module_& m) {
    m.def("use_nccl", &nccl::use_file, "path"_a);
    m.def("nccl_version", &nccl::version);
    m.def("memories", &memory_list);
    m.def("executors", &executor_list);
    m.def("operations", &operation_list);
    bind_transfers(m);
    bind_operations(m);
}

}  // namespace waywiser
