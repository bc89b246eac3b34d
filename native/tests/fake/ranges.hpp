// The runtime's knowledge of pointers: ranges of device, page-locked and managed memory; everything
// else is pageable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace waywiser::fake {

// The runtime's code for an invalid argument.
inline constexpr int kInvalidValue = 1;
// Throw the runtime's error for an invalid argument or device.
[[noreturn]] void reject_value(const char* call);
[[noreturn]] void reject_device(const char* call);

inline std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

enum class MemoryType { pageable, page_locked, managed, device };

struct Side {
    MemoryType type = MemoryType::pageable;
    int device = -1;        // for device memory
    std::size_t block = 0;  // for page-locked memory: its sequence number in this process

    [[nodiscard]] bool on_device() const { return type == MemoryType::device; }
    [[nodiscard]] bool managed() const { return type == MemoryType::managed; }
    [[nodiscard]] bool pageable() const { return type == MemoryType::pageable; }
};

class Ranges {
public:
    static Ranges& instance();

    // Throws like the runtime if the range overlaps an existing one.
    void add(const std::byte* data, std::size_t bytes, Side side, const char* call);
    void remove(const std::byte* data);
    // Throws an invalid value if the bytes cross the border of a range.
    [[nodiscard]] Side side(const void* data, std::size_t bytes, const char* call) const;
    [[nodiscard]] std::size_t device_bytes(int device) const;
    struct Known {
        std::byte* start = nullptr;
        std::size_t bytes = 0;
        Side side;
    };
    // The range that contains an address; nullopt for pageable memory.
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
