// The fake's managed memory: host memory with a location per 64 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "gpu/gpu.hpp"

namespace waywiser::fake {

class Managed {
public:
    static constexpr std::size_t kGranule = std::size_t{64} << 10;

    static Managed& instance();

    void add(const std::byte* data, std::size_t bytes);
    void remove(const std::byte* data);
    // Throws std::out_of_range if the byte is not managed memory.
    [[nodiscard]] gpu::Location location(const void* data) const;
    // Moves all granules that the bytes touch; calls `moved` for the bytes that come from
    // elsewhere, with their previous location.
    void move(const void* data, std::size_t bytes, gpu::Location to,
              const std::function<void(std::size_t bytes, gpu::Location from)>& moved = {});

private:
    struct Range {
        std::size_t bytes = 0;
        std::vector<gpu::Location> granules;
    };
    mutable std::mutex mutex_;
    std::map<std::uintptr_t, Range> ranges_;
};

}  // namespace waywiser::fake
