// Arguments that a call does not have: which one, what was given, and how the call is written.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace waywiser::python {

struct Parameter {
    std::string name;
    std::string fallback;  // as the caller writes it; empty: it has to be given
    bool by_name = false;  // only
};

struct Signature {
    std::string call;
    std::string owner;  // "TransferHandle." of its methods
    std::vector<Parameter> parameters;
    const char* doc = "";
};

// "copy(dst, src, *, stream=None)"
std::string text(const Signature& signature);

// Of the arguments, markers and the docstring that a call is bound with.
template <class... Extra>
Signature signature_of(const char* call, const Extra&... extra) {
    Signature signature{.call = call, .owner = {}, .parameters = {}};
    bool by_name = false;
    const auto take = [&]<class One>(const One& one) {
        if constexpr (std::is_same_v<One, nanobind::kw_only>) {
            by_name = true;
        } else if constexpr (requires { one.value; }) {
            signature.parameters.push_back({one.name_, nanobind::repr(one.value).c_str(), by_name});
        } else if constexpr (requires { one.name_; }) {
            signature.parameters.push_back({one.name_, "", by_name});
        } else if constexpr (std::is_convertible_v<const One&, const char*>) {
            signature.doc = one;
        }
    };
    (take(extra), ...);
    return signature;
}

// For a call whose arguments did not match: raises InvalidOperand. It is bound as an overload after
// the call itself, so that a call that matches costs nothing more.
[[noreturn]] void reject_arguments(const Signature& signature, const nanobind::args& by_position,
                                   const nanobind::kwargs& by_name);

}  // namespace waywiser::python
