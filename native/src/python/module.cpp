// The Python module of the native library; _native.pyi declares it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "gpu/gpu.hpp"
#include "host/hwloc.hpp"
#include "host/node_memory.hpp"
#include "measure/interval.hpp"
#include "python/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

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

}  // namespace
}  // namespace waywiser

NB_MODULE(_native, m) {
    using namespace waywiser;
    nb::set_leak_warnings(false);  // a killed or failing worker is no leak
    m.attr("backend") = gpu::backend();
    m.attr("runtime_version") = gpu::runtime_version();
    m.attr("architectures") = gpu::architectures();
    m.attr("hwloc_version") = host::hwloc_version();
    bind_errors(m);
    bind_words(m);
    bind_registry(m);
    bind_session(m);
    bind_ranks(m);
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
    m.def("free_on_node", [](int node) { return host::free_on_node(node); }, "node"_a);
    m.def("driver_version", &gpu::driver_version);
    m.def("gpu_unavailable_reason", &gpu::unavailable_reason);
    m.def("gpu_uuids", &gpu_uuids);
    m.def("gpus", &gpu_list);
}
