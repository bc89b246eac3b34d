// Reasons why a machine refuses what is asked of it, shared by transfers and operations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/registry.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

// Names the first setting that is not known, or whose value is not taken; `owner` is in the text.
std::optional<std::string> bad_setting(const std::string& owner,
                                       const std::vector<Parameter>& known,
                                       const Settings& settings);
// The value of a parameter in the settings, else its default; empty for an unknown parameter.
// Throws Refused for a value that is not taken.
std::string setting(const std::string& owner, const std::vector<Parameter>& known,
                    const Settings& settings, const std::string& name);
bool among(const std::vector<Place::Kind>& kinds, Place::Kind kind);
std::optional<std::string> missing_place(const Place& place, const Machine& machine);

}  // namespace waywiser
