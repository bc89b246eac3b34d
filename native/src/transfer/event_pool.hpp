// Events for ordering streams, kept for reuse: the runtime takes longer to create one than to
// record it.
#pragma once

#include <memory>

#include "gpu/gpu.hpp"

namespace waywiser::transfer {

// Thread safe. Its lock guards the events that are free; nothing else is locked and no event is
// created with it held.
class EventPool {
public:
    EventPool();
    // An event of the device, for ordering only. It returns to the pool when its last owner has
    // dropped it, also if what it recorded has not happened: a stream that waits for it waits for
    // what was recorded before. The pool may end first. Throws gpu::Error.
    [[nodiscard]] std::shared_ptr<gpu::Event> take(int device) const;

private:
    struct Free;
    std::shared_ptr<Free> free_;
};

}  // namespace waywiser::transfer
