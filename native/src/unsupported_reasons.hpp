// Reasons why a machine does not support a transfer or an operation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/registry.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

// Names the first unknown setting or invalid value; `owner` is part of the text.
std::optional<std::string> bad_setting(const std::string& owner,
                                       const std::vector<Parameter>& known,
                                       const Settings& settings);
// The value of a parameter in the settings, else its default; empty for an unknown parameter.
// Throws NotSupported for an invalid value.
std::string setting(const std::string& owner, const std::vector<Parameter>& known,
                    const Settings& settings, const std::string& name);
bool among(const std::vector<Place::Kind>& kinds, Place::Kind kind);
std::optional<std::string> missing_place(const Place& place, const Machine& machine);

}  // namespace waywiser
