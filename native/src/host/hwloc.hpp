// The machine's topology from hwloc as one XML text, so that a live machine and a saved file are
// handled alike.
#pragma once

#include <optional>
#include <string>

namespace waywiser::host {

// The system that this process may see, with its PCI and OS devices, as hwloc 2 XML. With a file
// name: that file converted to this hwloc's format, which also converts hwloc 1 files. Throws
// std::runtime_error with one line.
std::string hwloc_xml(const std::optional<std::string>& xml_file = std::nullopt);

// The version of hwloc that this was built with, such as "2.9.0".
std::string hwloc_version();

}  // namespace waywiser::host
