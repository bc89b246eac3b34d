// Units of bytes, for all tests.
#pragma once

#include <cstddef>

namespace waywiser {

inline constexpr std::size_t kKiB = std::size_t{1} << 10;
inline constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace waywiser
