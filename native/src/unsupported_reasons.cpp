#include "unsupported_reasons.hpp"

#include <algorithm>
#include <set>
#include <sstream>

namespace waywiser {
namespace {

std::string choices_text(const Parameter& parameter) {
    std::string text;
    for (const std::string& choice : parameter.choices) text += (text.empty() ? "" : ", ") + choice;
    return text;
}

// A subset is several different choices, joined by plus signs.
bool is_subset(const Parameter& parameter, const std::string& value) {
    std::set<std::string> members;
    std::istringstream stream(value);
    for (std::string member; std::getline(stream, member, '+');) {
        if (std::ranges::find(parameter.choices, member) == parameter.choices.end() ||
            member == parameter.fallback() || !members.insert(member).second) {
            return false;
        }
    }
    return !members.empty() && !value.ends_with('+');
}

// Ordered parameters take any whole number from the smallest to the largest of their choices.
bool takes(const Parameter& parameter, const std::string& value) {
    if (std::ranges::find(parameter.choices, value) != parameter.choices.end()) return true;
    if (parameter.kind == ParameterKind::subset) return is_subset(parameter, value);
    if (parameter.kind != ParameterKind::ordered || value.empty() || value.size() > 9 ||
        !std::ranges::all_of(value, [](unsigned char c) { return c >= '0' && c <= '9'; })) {
        return false;
    }
    const auto number = [](const std::string& text) { return std::stol(text); };
    const auto [least, most] = std::ranges::minmax(parameter.choices, {}, number);
    return number(value) >= number(least) && number(value) <= number(most);
}

const Parameter* find(const std::vector<Parameter>& parameters, const std::string& name) {
    const auto it = std::ranges::find(parameters, name, &Parameter::name);
    return it == parameters.end() ? nullptr : &*it;
}

}  // namespace

std::optional<std::string> bad_setting(const std::string& owner,
                                       const std::vector<Parameter>& known,
                                       const Settings& settings) {
    for (const auto& [name, value] : settings) {
        const Parameter* parameter = find(known, name);
        if (parameter == nullptr) return owner + " has no '" + name + "' here";
        if (!takes(*parameter, value)) {
            return owner + " has no " + name + "=" + value + " here: it takes " +
                   choices_text(*parameter);
        }
    }
    return std::nullopt;
}

std::string setting(const std::string& owner, const std::vector<Parameter>& known,
                    const Settings& settings, const std::string& name) {
    const Parameter* found = find(known, name);
    if (found == nullptr) return {};
    const auto it = settings.find(name);
    if (it == settings.end()) return found->fallback();
    if (!takes(*found, it->second)) {
        throw NotSupported(*bad_setting(owner, known, {{name, it->second}}));
    }
    return it->second;
}

bool among(const std::vector<Place::Kind>& kinds, Place::Kind kind) {
    return std::ranges::find(kinds, kind) != kinds.end();
}

std::optional<std::string> missing_place(const Place& place, const Machine& machine) {
    if (place.kind == Place::Kind::gpu && machine.gpu(place.index) == nullptr) {
        return "this machine has no " + place.text();
    }
    if (place.kind == Place::Kind::numa && machine.node(place.index) == nullptr) {
        return "this machine has no " + place.text() + " with CPUs and memory";
    }
    if (place.kind == Place::Kind::rank && machine.rank(place.index) == nullptr) {
        return "there is no " + place.text() + " in this launch";
    }
    if (place.kind == Place::Kind::file && machine.file(place.file) == nullptr) {
        return "this machine has no " + place.text() + ": name it with --file";
    }
    return std::nullopt;
}

}  // namespace waywiser
