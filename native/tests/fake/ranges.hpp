// What every pointer is, as the runtime knows it: ranges of device, page-locked and managed memory;
// all else is pageable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace waywiser::fake {

// The runtime's code of a wrong argument.
inline constexpr int kInvalidValue = 1;
// Throw what the runtime says of a wrong argument, or of a wrong device.
[[noreturn]] void refuse_value(const char* call);
[[noreturn]] void refuse_device(const char* call);

inline std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

enum class MemoryType { pageable, page_locked, managed, device };

struct Side {
    MemoryType type = MemoryType::pageable;
    int device = -1;        // of device memory
    std::size_t block = 0;  // of page-locked memory: how many there were before in this process

    [[nodiscard]] bool on_device() const { return type == MemoryType::device; }
    [[nodiscard]] bool managed() const { return type == MemoryType::managed; }
    [[nodiscard]] bool pageable() const { return type == MemoryType::pageable; }
};

class Ranges {
public:
    static Ranges& instance();

    // Throws as the runtime does where the range overlaps one that is there already.
    void add(const std::byte* data, std::size_t bytes, Side side, const char* call);
    void remove(const std::byte* data);
    // Throws an invalid value where the bytes reach out of a range, into or out of it.
    [[nodiscard]] Side side(const void* data, std::size_t bytes, const char* call) const;
    [[nodiscard]] std::size_t device_bytes(int device) const;
    struct Known {
        std::byte* start = nullptr;
        std::size_t bytes = 0;
        Side side;
    };
    // The range that an address lies in; nothing of pageable memory.
    [[nodiscard]] std::optional<Known> range(const void* data) const;

private:
    struct Range {
        std::size_t bytes = 0;
        Side side;
    };
    [[nodiscard]] bool overlaps(std::uintptr_t begin, std::size_t bytes) const;

    mutable std::mutex mutex_;
    std::map<std::uintptr_t, Range> ranges_;
    std::size_t page_locked_ = 0;
};

}  // namespace waywiser::fake
