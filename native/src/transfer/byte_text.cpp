#include "transfer/byte_text.hpp"

#include <array>
#include <cstddef>
#include <cstdio>

namespace waywiser::transfer {

std::string text_of_bytes(std::uint64_t bytes) {
    constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    auto value = static_cast<double>(bytes);
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g %s", value, kUnits[unit]);
    return text.data();
}

std::string text_of_list(std::uint64_t bytes, std::size_t pieces) {
    return text_of_bytes(bytes) + " in " + std::to_string(pieces) +
           (pieces == 1 ? " piece" : " pieces");
}

}  // namespace waywiser::transfer
