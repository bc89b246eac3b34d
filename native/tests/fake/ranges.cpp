#include "ranges.hpp"

#include <iterator>

#include "gpu/gpu.hpp"

namespace waywiser::fake {
namespace {

constexpr int kInvalidDevice = 101;
constexpr int kAlreadyRegistered = 712;

}  // namespace

void reject_value(const char* call) {
    throw gpu::Error(gpu::Failure::other, call, kInvalidValue, "cudaErrorInvalidValue");
}

void reject_device(const char* call) {
    throw gpu::Error(gpu::Failure::other, call, kInvalidDevice, "cudaErrorInvalidDevice");
}

Ranges& Ranges::instance() {
    static Ranges& ranges = *new Ranges();
    return ranges;
}

bool Ranges::overlaps(std::uintptr_t begin, std::size_t bytes) const {
    auto next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first < begin + bytes) return true;
    if (next == ranges_.begin()) return false;
    const auto before = std::prev(next);
    return before->first + before->second.bytes > begin;
}

void Ranges::add(const std::byte* data, std::size_t bytes, Side side, const char* call) {
    const std::lock_guard lock(mutex_);
    if (overlaps(address(data), bytes)) {
        throw gpu::Error(gpu::Failure::other, call, kAlreadyRegistered,
                         "cudaErrorHostMemoryAlreadyRegistered");
    }
    if (side.type == MemoryType::page_locked) side.block = page_locked_++;
    ranges_.emplace(address(data), Range{bytes, side});
}

void Ranges::remove(const std::byte* data) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(address(data));
}

Side Ranges::side(const void* data, std::size_t bytes, const char* call) const {
    const std::lock_guard lock(mutex_);
    if (!overlaps(address(data), bytes)) return {};
    const auto after = ranges_.upper_bound(address(data));
    if (after != ranges_.begin()) {
        const auto& [begin, range] = *std::prev(after);
        if (address(data) + bytes <= begin + range.bytes) return range.side;
    }
    reject_value(call);
}

std::optional<Ranges::Known> Ranges::range(const void* data) const {
    const std::lock_guard lock(mutex_);
    const auto after = ranges_.upper_bound(address(data));
    if (after == ranges_.begin()) return std::nullopt;
    const auto& [begin, range] = *std::prev(after);
    if (address(data) >= begin + range.bytes) return std::nullopt;
    return Known{reinterpret_cast<std::byte*>(begin), range.bytes, range.side};
}

std::size_t Ranges::device_bytes(int device) const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [begin, range] : ranges_) {
        if (range.side.on_device() && range.side.device == device) total += range.bytes;
    }
    return total;
}

}  // namespace waywiser::fake
