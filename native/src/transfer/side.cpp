#include "transfer/side.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "transfer/describe.hpp"

namespace waywiser::transfer {

void check_range(const void* data, std::size_t bytes, const char* call, const char* argument) {
    if (data == nullptr) {
        throw InvalidCopy(std::string(call) + ": the argument " + argument +
                          " is a null pointer: pass memory of " + std::to_string(bytes) + " bytes");
    }
    if (reinterpret_cast<std::uintptr_t>(data) >
        std::numeric_limits<std::uintptr_t>::max() - bytes) {
        throw InvalidCopy(std::string(call) + ": " + std::to_string(bytes) + " bytes from " +
                          argument + " exceed the address space: check the number of bytes");
    }
}

bool overlap(const void* a, const void* b, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(a);
    const auto second = reinterpret_cast<std::uintptr_t>(b);
    return first < second + bytes && second < first + bytes;
}

void check_copy(const void* to, const void* from, std::size_t bytes) {
    check_range(to, bytes, "copy", "to");
    check_range(from, bytes, "copy", "from");
    if (overlap(to, from, bytes)) {
        throw InvalidCopy("copy: source and destination overlap in " + std::to_string(bytes) +
                          " bytes: copy through a third buffer");
    }
}

Side side_of(void* data, std::size_t bytes) {
    const Range range = range_of(data, bytes);
    Side side{.end = Endpoint::host(data, false), .managed = false, .uniform = range.uniform};
    switch (range.kind) {
        case gpu::PointerKind::pageable: break;
        case gpu::PointerKind::pinned: side.end.pinned = range.uniform; break;
        case gpu::PointerKind::device: side.end = Endpoint::device(data, range.device); break;
        case gpu::PointerKind::managed: side.managed = true; break;
    }
    return side;
}

int operand_gpu(const Side& to, const Side& from) {
    return to.end.gpu >= 0 ? to.end.gpu : from.end.gpu;
}

bool gpu_reaches(const Side& side) {
    return side.uniform && (side.end.kind == Endpoint::Kind::device || side.end.pinned) &&
           !side.managed;
}

}  // namespace waywiser::transfer
