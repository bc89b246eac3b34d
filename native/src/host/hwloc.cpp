#include "hwloc.hpp"

#include <hwloc.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace waywiser::host {
namespace {

struct TopologyDeleter {
    void operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

void check(int result, const std::string& what) {
    if (result == 0) return;
    const int code = errno;  // hwloc mostly sets it, but not always
    throw std::runtime_error(code == 0 ? what : what + " (" + std::strerror(code) + ")");
}

Topology load(const std::optional<std::string>& xml_file) {
    hwloc_topology_t raw = nullptr;
    errno = 0;
    check(hwloc_topology_init(&raw), "hwloc cannot start");
    Topology topology(raw);
    const std::string what =
        xml_file ? *xml_file + ": not a topology that hwloc " + hwloc_version() + " reads"
                 : std::string("hwloc cannot read this machine");
    if (xml_file) {
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(*xml_file, ignored)) {
            throw std::runtime_error(*xml_file + ": no such file");
        }
        check(hwloc_topology_set_xml(raw, xml_file->c_str()), what);
    }
    // By default hwloc omits bridges and devices, and so the links to the GPUs.
    check(hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL), what);
    check(hwloc_topology_load(raw), what);
    return topology;
}

}  // namespace

std::string hwloc_xml(const std::optional<std::string>& xml_file) {
    const Topology topology = load(xml_file);
    char* text = nullptr;
    int length = 0;
    errno = 0;
    check(hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, 0),
          "hwloc cannot write its topology");
    const auto release = [&topology](char* buffer) {
        hwloc_free_xmlbuffer(topology.get(), buffer);
    };
    const std::unique_ptr<char, decltype(release)> buffer(text, release);
    return {text, static_cast<std::size_t>(length) - 1};  // hwloc counts the terminating zero
}

std::string hwloc_version() { return HWLOC_VERSION; }

}  // namespace waywiser::host
