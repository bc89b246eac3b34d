// Bindings of the data model: memories, transfers, operations and machines.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.hpp"
#include "waywiser/operation.hpp"
#include "waywiser/words.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

void bind_transfer(nb::module_& m) {
    nb::class_<Memory>(m, "Memory")
        .def(
            "__init__",
            [](Memory* self, std::string kind, const std::string& place, Settings variant) {
                require_name(kind);
                require_settings(variant);
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
                require_name(executor);
                require_bytes(bytes);
                require_settings(parameters);
                require_layout_settings(layout_settings);
                new (self)
                    Transfer{{std::move(source), std::move(destination), std::move(executor)},
                             bytes,
                             std::move(parameters),
                             {Layout::parse_kind(layout), std::move(layout_settings)}};
            },
            "source"_a, "destination"_a, "executor"_a, "bytes"_a, "parameters"_a = Settings(),
            "layout"_a = "contiguous", "layout_settings"_a = Settings())
        .def("__str__", &Transfer::text);
}

void bind_operation(nb::module_& m) {
    nb::class_<OperationCall>(m, "Operation")
        .def(
            "__init__",
            [](OperationCall* self, std::string name, const std::string& place,
               Settings parameters) {
                require_name(name);
                require_settings(parameters);
                new (self)
                    OperationCall{std::move(name), Place::parse(place), std::move(parameters)};
            },
            "name"_a, "place"_a, "parameters"_a = Settings())
        .def("__str__", &OperationCall::text);
}

void bind_places(nb::module_& m) {
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
}

void bind_machine(nb::module_& m) {
    nb::class_<RankPlace>(m, "RankPlace")
        .def(
            "__init__",
            [](RankPlace* self, int index, std::vector<int> cpus, int numa, int gpu,
               std::vector<std::string> unsent, std::string messages,
               std::vector<std::string> unexchanged) {
                new (self) RankPlace{index,
                                     std::move(cpus),
                                     numa,
                                     gpu,
                                     std::move(unsent),
                                     std::move(messages),
                                     std::move(unexchanged)};
            },
            "index"_a, "cpus"_a, "numa"_a, "gpu"_a = -1, "unsent"_a = std::vector<std::string>(),
            "messages"_a = "mpi", "unexchanged"_a = std::vector<std::string>());
    nb::class_<Machine>(m, "Machine")
        .def(
            "__init__",
            [](Machine* self, std::vector<NumaNode> numa, std::vector<GpuPlace> gpus,
               std::vector<FilePlace> files, std::vector<RankPlace> ranks) {
                new (self)
                    Machine{std::move(numa), std::move(gpus), std::move(files), std::move(ranks)};
            },
            "numa"_a, "gpus"_a, "files"_a = std::vector<FilePlace>(),
            "ranks"_a = std::vector<RankPlace>());
}

}  // namespace

void bind_words(nb::module_& m) {
    bind_transfer(m);
    bind_operation(m);
    bind_places(m);
    bind_machine(m);
}

}  // namespace waywiser
