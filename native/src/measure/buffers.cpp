#include "measure/buffers.hpp"

#include <algorithm>

namespace waywiser::measure {
namespace {

// Small sizes share one buffer of this size where the bound leaves room for several: shuffled
// sizes then allocate once.
constexpr std::size_t kUsual = std::size_t{64} << 20;
constexpr std::size_t kUsualFraction = 16;

bool idle(const std::shared_ptr<Buffer>& buffer) { return buffer.use_count() == 1; }

}  // namespace

BufferPool::BufferPool(const Machine& machine, std::size_t limit_bytes)
    : machine_(machine), limit_(limit_bytes) {}

std::size_t BufferPool::bytes() const {
    std::size_t total = 0;
    for (const Entry& entry : entries_) total += entry.buffer->bytes();
    return total;
}

void BufferPool::clear() {
    std::erase_if(entries_, [](const Entry& entry) { return idle(entry.buffer); });
}

void BufferPool::make_room(const Memory& memory, std::size_t bytes) {
    // A smaller idle one of the same memory will not be wanted again soon.
    std::erase_if(entries_,
                  [&](const Entry& entry) { return entry.memory == memory && idle(entry.buffer); });
    for (auto it = entries_.begin(); it != entries_.end() && this->bytes() + bytes > limit_;) {
        it = idle(it->buffer) ? entries_.erase(it) : std::next(it);
    }
    if (this->bytes() + bytes > limit_) {
        throw Refused("the workload's buffers need more than the " + std::to_string(limit_ >> 20) +
                      " MiB allowed: raise --memory");
    }
}

std::shared_ptr<Buffer> BufferPool::take(const Memory& memory, std::size_t bytes) {
    const auto fits = [&](const Entry& entry) {
        return entry.memory == memory && idle(entry.buffer) && entry.buffer->bytes() >= bytes;
    };
    if (const auto it = std::ranges::find_if(entries_, fits); it != entries_.end()) {
        entries_.splice(entries_.end(), entries_, it);
        return entries_.back().buffer;
    }
    const std::size_t usual = kUsual * kUsualFraction <= limit_ ? std::max(bytes, kUsual) : bytes;
    make_room(memory, usual);
    const MemoryKind* kind = Memories::instance().find(memory.kind);
    entries_.push_back({memory, kind->allocate(memory, usual, machine_)});
    peak_ = std::max(peak_, this->bytes());
    return entries_.back().buffer;
}

}  // namespace waywiser::measure
