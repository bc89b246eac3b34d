// What the machine is made of, as hwloc sees it: one XML text, so that a live machine and a file
// that somebody sent are the same thing to everybody above.
#pragma once

#include <optional>
#include <string>

namespace waywiser::host {

// The whole system that this process may see, with its PCI and OS devices, as hwloc 2 XML. With a
// file: that file read again and written in this version's form, which also turns hwloc 1 files
// into hwloc 2. Throws std::runtime_error with one line.
std::string hwloc_xml(const std::optional<std::string>& xml_file = std::nullopt);

// Of the hwloc that this was built with, as in "2.9.0".
std::string hwloc_version();

}  // namespace waywiser::host
