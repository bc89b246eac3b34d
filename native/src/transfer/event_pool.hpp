// Events for ordering streams, kept for reuse: the runtime takes longer to create one than to
// record it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/gpu.hpp"
#include "host/spinning_mutex.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the events that are free; nothing else is locked and no event is
// created with it held.
class EventPool {
public:
    // An event of the device, for ordering only. It may be dropped instead of given back. Throws
    // gpu::Error.
    [[nodiscard]] std::shared_ptr<gpu::Event> take(int device);
    // The device must be that of take(). The event is not used again if another owner still has
    // it: a stream may be about to wait for what it recorded.
    void give_back(int device, std::shared_ptr<gpu::Event> event);

private:
    host::SpinningMutex mutex_;
    std::map<int, std::vector<std::shared_ptr<gpu::Event>>> free_;  // by device
};

}  // namespace waywiser::transfer
