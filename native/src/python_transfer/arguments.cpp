#include "arguments.hpp"

#include <algorithm>
#include <cstddef>

#include "errors.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// A call that has all arguments: "copy_batch(dsts=..., srcs=..., stream=None)".
std::string example(const Signature& signature) {
    std::string out;
    for (const Parameter& one : signature.parameters) {
        if (!out.empty()) out += ", ";
        out += one.name;
        if (!one.fallback.empty()) {
            out += "=" + one.fallback;
        } else if (one.by_name) {
            out += "=...";
        }
    }
    return signature.call + "(" + out + ")";
}

std::string arguments(std::size_t count) {
    return count == 1 ? "1 argument is given" : std::to_string(count) + " arguments are given";
}

// What is wrong with them; empty if nothing is.
std::string fault(const Signature& signature, std::size_t by_position, const nb::kwargs& by_name) {
    const std::vector<Parameter>& all = signature.parameters;
    const auto positions = static_cast<std::size_t>(
        std::ranges::count_if(all, [](const Parameter& one) { return !one.by_name; }));
    for (const auto& [name, value] : by_name) {
        const std::string key = printed(name);
        const auto known = std::ranges::find(all, key, &Parameter::name);
        if (known == all.end()) return "there is no argument " + key;
        if (static_cast<std::size_t>(known - all.begin()) < std::min(by_position, positions)) {
            return "the argument " + key + " is given twice, by position and by name";
        }
    }
    if (by_position > positions) {
        const std::string most = positions == 0 ? "none" : "at most " + std::to_string(positions);
        if (positions == all.size()) return arguments(by_position) + ", and it takes " + most;
        return arguments(by_position) + " by position, and " + most + " may be: give " +
               all[positions].name + " by name";
    }
    for (std::size_t i = by_position; i < all.size(); ++i) {
        if (all[i].fallback.empty() && !by_name.contains(all[i].name.c_str())) {
            return "the argument " + all[i].name + " is missing";
        }
    }
    return "";
}

}  // namespace

std::string text(const Signature& signature) {
    std::string out;
    bool by_name = false;
    for (const Parameter& one : signature.parameters) {
        if (!out.empty()) out += ", ";
        if (one.by_name && !by_name) out += "*, ";
        by_name = one.by_name;
        out += one.name;
        if (!one.fallback.empty()) out += "=" + one.fallback;
    }
    return signature.call + "(" + out + ")";
}

void reject_arguments(const Signature& signature, const nb::args& by_position,
                      const nb::kwargs& by_name) {
    const std::string found = fault(signature, by_position.size(), by_name);
    raise(Failure::invalid_operand, {.what = found.empty() ? "the arguments do not fit" : found,
                                     .where = signature.owner + signature.call,
                                     .remedy = "write " + example(signature)});
}

}  // namespace waywiser::python
