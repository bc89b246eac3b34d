// Numbers of bytes for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace waywiser::transfer {

// In the largest unit of which there is at least one, with four digits: "2.5 MiB".
std::string text_of_bytes(std::uint64_t bytes);
// "2.5 MiB in 8 pieces".
std::string text_of_list(std::uint64_t bytes, std::size_t pieces);

}  // namespace waywiser::transfer
