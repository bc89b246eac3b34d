// The parts of the Python module, each of which adds its own bindings.
#pragma once

#include <nanobind/nanobind.h>

#include "waywiser/words.hpp"

namespace waywiser {

void bind_errors(nanobind::module_& m);
void bind_words(nanobind::module_& m);
void bind_registry(nanobind::module_& m);
void bind_session(nanobind::module_& m);
void bind_ranks(nanobind::module_& m);

inline const char* text(TimingMode mode) { return mode == TimingMode::device ? "device" : "host"; }

}  // namespace waywiser
