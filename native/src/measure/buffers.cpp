#include "measure/buffers.hpp"

#include <algorithm>
#include <new>

#include "gpu/gpu.hpp"

namespace waywiser::measure {
namespace {

// Small sizes share one buffer of this size if the limit allows several: shuffled sizes then
// allocate once.
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

bool BufferPool::evict_for(const Memory& memory, std::size_t bytes) {
    // A smaller idle buffer of the same memory is not likely to be reused soon.
    std::erase_if(entries_,
                  [&](const Entry& entry) { return entry.memory == memory && idle(entry.buffer); });
    for (auto it = entries_.begin(); it != entries_.end() && this->bytes() + bytes > available();) {
        it = idle(it->buffer) ? entries_.erase(it) : std::next(it);
    }
    return this->bytes() + bytes <= available();
}

// The smallest sufficient buffer: the same workload may need a larger one.
std::shared_ptr<Buffer> BufferPool::idle_for(const Spec& spec) {
    auto best = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        if (it->memory != spec.memory || !idle(it->buffer)) continue;
        const std::size_t bytes = it->buffer->bytes();
        if (bytes < spec.bytes || (best != entries_.end() && bytes >= best->buffer->bytes())) {
            continue;
        }
        best = it;
    }
    if (best == entries_.end()) return nullptr;
    entries_.splice(entries_.end(), entries_, best);
    return entries_.back().buffer;
}

std::vector<std::shared_ptr<Buffer>> BufferPool::take_all(const std::vector<Spec>& specs,
                                                          Manner manner) {
    const bool generous = manner == Manner::generous && kUsual * kUsualFraction <= available();
    std::vector<std::shared_ptr<Buffer>> taken;
    for (const Spec& spec : specs) {
        if (auto found = idle_for(spec)) {
            taken.push_back(std::move(found));
            continue;
        }
        // A file may have no more bytes than requested.
        const bool enlarge = generous && !spec.memory.in_file();
        const std::size_t bytes = enlarge ? std::max(spec.bytes, kUsual) : spec.bytes;
        if (!evict_for(spec.memory, bytes)) return {};
        const MemoryKind* kind = Memories::instance().find(spec.memory.kind);
        entries_.push_back({spec.memory, kind->allocate(spec.memory, bytes, machine_)});
        taken.push_back(entries_.back().buffer);
        peak_ = std::max(peak_, this->bytes());
    }
    return taken;
}

std::vector<std::shared_ptr<Buffer>> BufferPool::take(const std::vector<Spec>& specs) {
    const auto generously = [&]() -> std::vector<std::shared_ptr<Buffer>> {
        try {
            return take_all(specs, Manner::generous);
        } catch (const NotSupported&) {
            return {};  // idle scratch files may use up their place's limit,
        } catch (const std::bad_alloc&) {
            return {};  // and idle memory that of the machine
        } catch (const gpu::Error& error) {
            if (error.kind() != gpu::Failure::out_of_memory) throw;
            return {};  // or of a GPU
        }
    };
    auto taken = generously();
    if (taken.size() == specs.size()) return taken;
    clear();
    taken = take_all(specs, Manner::exact);
    if (taken.size() == specs.size()) return taken;
    throw NotSupported("the workload's buffers need more than the " + std::to_string(limit_ >> 20) +
                       " MiB allowed: raise --memory");
}

std::shared_ptr<Buffer> BufferPool::take(const Memory& memory, std::size_t bytes) {
    return take({{memory, bytes}}).front();
}

}  // namespace waywiser::measure
