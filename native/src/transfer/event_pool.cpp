#include "transfer/event_pool.hpp"

#include <utility>

namespace waywiser::transfer {

gpu::Event EventPool::take(int device) {
    {
        const std::lock_guard lock(mutex_);
        auto& free = free_[device];
        if (!free.empty()) {
            gpu::Event event = std::move(free.back());
            free.pop_back();
            return event;
        }
    }
    return gpu::Event(device, gpu::EventUse::ordering);
}

void EventPool::give_back(int device, gpu::Event event) {
    const std::lock_guard lock(mutex_);
    free_[device].push_back(std::move(event));
}

}  // namespace waywiser::transfer
