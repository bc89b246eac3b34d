#include "trace/buffers.hpp"

#include <cstdlib>

#include "trace/tracer.hpp"

namespace waywiser::trace {

void give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    Tracer* const tracer = Tracer::current();
    *most_records = 0;  // as many as there is room for
    *buffer = tracer != nullptr ? tracer->new_buffer()
                                : static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
    *size = *buffer != nullptr ? kBufferBytes : 0;  // CUPTI counts what it drops
}

void take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                 std::size_t valid) {
    Tracer* const tracer = Tracer::current();
    if (tracer == nullptr) return std::free(buffer);
    if (buffer == nullptr) return;
    tracer->on_buffer(context, stream, buffer, valid);
    tracer->keep_buffer(buffer);
}

}  // namespace waywiser::trace
