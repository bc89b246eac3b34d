// The useful numbers of threads on so many CPUs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace waywiser {

// 1, 2, 4, ... and all.
inline std::vector<std::string> thread_choices(std::size_t most) {
    std::vector<std::string> choices;
    for (std::size_t n = 1; n < most; n *= 2) choices.push_back(std::to_string(n));
    choices.push_back(std::to_string(std::max<std::size_t>(most, 1)));
    return choices;
}

}  // namespace waywiser
