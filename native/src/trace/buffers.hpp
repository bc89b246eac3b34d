// The memory that CUPTI writes records to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace waywiser::trace {

constexpr std::size_t kBufferBytes = 1 << 20;

void give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
// Hands what is in it to the tracer of this process.
void take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                 std::size_t valid);

}  // namespace waywiser::trace
