#include "transfer/event_pool.hpp"

#include <utility>

namespace waywiser::transfer {

std::shared_ptr<gpu::Event> EventPool::take(int device) {
    {
        const std::lock_guard lock(mutex_);
        auto& free = free_[device];
        if (!free.empty()) {
            std::shared_ptr<gpu::Event> event = std::move(free.back());
            free.pop_back();
            return event;
        }
    }
    return std::make_shared<gpu::Event>(device, gpu::EventUse::ordering);
}

void EventPool::give_back(int device, std::shared_ptr<gpu::Event> event) {
    if (event.use_count() != 1) return;
    const std::lock_guard lock(mutex_);
    free_[device].push_back(std::move(event));
}

}  // namespace waywiser::transfer
