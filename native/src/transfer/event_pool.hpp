// Events for ordering streams, kept for reuse: the runtime takes longer to create one than to
// record it.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "gpu/gpu.hpp"
#include "host/spinning_mutex.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the events that nobody has taken; nothing else is locked and no
// event is created with it held.
class EventPool {
public:
    // An event of the device, for ordering only. The taker owns it, and may drop it instead of
    // giving it back. Throws gpu::Error.
    [[nodiscard]] gpu::Event take(int device);
    // The device must be that of take(). No stream may be about to wait for the event.
    void give_back(int device, gpu::Event event);

private:
    host::SpinningMutex mutex_;
    std::map<int, std::vector<gpu::Event>> free_;  // by device
};

}  // namespace waywiser::transfer
