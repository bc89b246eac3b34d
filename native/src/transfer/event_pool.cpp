#include "transfer/event_pool.hpp"

#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "host/spinning_mutex.hpp"

namespace waywiser::transfer {

struct EventPool::Free {
    host::SpinningMutex mutex;
    std::map<int, std::vector<std::unique_ptr<gpu::Event>>> events;  // by device

    std::unique_ptr<gpu::Event> take(int device) {
        const std::lock_guard lock(mutex);
        auto& some = events[device];
        if (some.empty()) return nullptr;
        std::unique_ptr<gpu::Event> event = std::move(some.back());
        some.pop_back();
        return event;
    }
    void give_back(int device, std::unique_ptr<gpu::Event> event) noexcept {
        try {
            const std::lock_guard lock(mutex);
            events[device].push_back(std::move(event));
        } catch (const std::bad_alloc&) {
            event.reset();  // it is not kept
        }
    }
};

EventPool::EventPool() : free_(std::make_shared<Free>()) {}

std::shared_ptr<gpu::Event> EventPool::take(int device) const {
    std::unique_ptr<gpu::Event> event = free_->take(device);
    if (!event) event = std::make_unique<gpu::Event>(device, gpu::EventUse::ordering);
    return {event.release(), [free = free_, device](gpu::Event* own) {
                free->give_back(device, std::unique_ptr<gpu::Event>(own));
            }};
}

}  // namespace waywiser::transfer
