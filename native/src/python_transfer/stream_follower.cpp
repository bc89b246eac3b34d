#include "stream_follower.hpp"

#include <memory>
#include <utility>

namespace nb = nanobind;

namespace waywiser::python {

StreamFollower::~StreamFollower() {
    if (unmarked_) {
        keep_for_ever(held_);
        waywiser_transfer_release(mark_);
        return;
    }
    if (mark_ == nullptr) return;
    keep(std::make_shared<PendingTransfer>(
        StartedTransfer{.transfer = mark_, .held = std::move(held_), .streams = streams_}));
}

waywiser_status StreamFollower::mark(waywiser_context* context) {
    waywiser_transfer* next = nullptr;
    const waywiser_status status = waywiser_mark(context, streams_.carrier, &next);
    if (status == WAYWISER_OK) {
        waywiser_transfer_release(std::exchange(mark_, next));
    } else if (status != WAYWISER_GPU_LOST) {  // a lost GPU writes nothing any more
        unmarked_ = true;
    }
    return status;
}

waywiser_status StreamFollower::hold_back(void* stream) {
    if (mark_ == nullptr) return WAYWISER_OK;
    return waywiser_transfer_wait(mark_, stream, kNoLimit);
}

}  // namespace waywiser::python
